#!/usr/bin/env python3
"""A login as Codex stores it, made up: nobody signed its tokens, and no service knows them."""
import base64, json, time


def part(claims):
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()


def token(**claims):
    account = {"chatgpt_account_id": "account-1", "chatgpt_plan_type": "plus", "chatgpt_user_id": "user-1"}
    claims = {"exp": int(time.time()) + 3600, "https://api.openai.com/auth": account, **claims}
    return f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part(claims)}.bWFkZS11cC1zaWduYXR1cmU"


print(json.dumps({
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {"id_token": token(email="someone@example.com"), "access_token": token(), "refresh_token": "rt_made_up_0123456789", "account_id": "account-1"},
    "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
}))
