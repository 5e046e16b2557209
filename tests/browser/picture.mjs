// The picture in the README: the page of the quickstart. node tests/browser/picture.mjs docs/images/report.png
import { join, resolve } from "node:path";
import { open, root, runSuite, startBrowser, stopBrowser } from "./support.mjs";

await startBrowser();
const { page } = await open(runSuite(join(root, "examples/quickstart"), "picture"), { viewport: { width: 1240, height: 1180 } });
await page.screenshot({ path: resolve(process.argv[2]) });
await stopBrowser();
