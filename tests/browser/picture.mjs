// The pictures of the documents: the page of the quickstart, light and dark, and one of its trials.
// node tests/browser/picture.mjs docs/images
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { open, root, runSuite, startBrowser, stopBrowser } from "./support.mjs";

const out = resolve(process.argv[2]);
await startBrowser();
// Outside the repository, whose commit would be another in every picture.
const place = mkdtempSync(join(tmpdir(), "assize-picture-"));
cpSync(join(root, "examples/quickstart"), join(place, "quickstart"), { recursive: true });
const file = runSuite(join(place, "quickstart"), "picture");
const take = async (name, options, hash = "") => {
  const { page } = await open(file, options);
  if (hash) {
    await page.evaluate((target) => { location.hash = target; }, hash);
    await page.locator("#trial h1").waitFor();
  }
  await page.screenshot({ path: join(out, `${name}.png`) });
  await page.close();
};
await take("report", { viewport: { width: 1240, height: 1180 } });
await take("report-dark", { viewport: { width: 1240, height: 900 }, colorScheme: "dark" });
await take("report-phone", { viewport: { width: 390, height: 844 } });
await take("scenario", { viewport: { width: 1240, height: 760 } }, "scenario-2");
await stopBrowser();
rmSync(place, { recursive: true });
