"""Secrets in the shapes in which they occur (rulings A12, N7): by form, by place, and in disguise.

Every one is generated and concatenated when the tests run, so that no line here looks like a secret and no scanner
reports it. A shape is a text, and the parts of it that must be redacted.
"""

import base64
import json
import random
import string
from dataclasses import dataclass
from urllib.parse import quote

_DRAW = random.Random(20261122)
_ALNUM, _HEX, _UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits
_LOWER = string.ascii_lowercase + string.digits
_BASE64, _URL = _ALNUM + "+/", _ALNUM + "_-"


@dataclass(frozen=True)
class Shape:
    """A text that contains a secret."""

    name: str
    text: str
    secret: tuple[str, ...]
    """The parts of the secret, as they occur in the text."""

    def leaks(self, text: str) -> bool:
        """Return whether any revealing part of the secret is left."""
        return any(piece[at : at + 10] in text for piece in self.secret for at in range(max(1, len(piece) - 9)))


def _of(alphabet: str, length: int) -> str:
    """Generate a random string with a digit and a letter."""
    drawn = [_DRAW.choice(alphabet) for _ in range(length)]
    letters = [each for each in alphabet if each.isalpha()]
    for place, kind in enumerate((string.digits, letters, string.digits, letters)):
        if place < length - 1:
            drawn[place + 1] = _DRAW.choice(kind)
    drawn[0] = _DRAW.choice(letters)
    return "".join(drawn)


def alnum(length: int) -> str:
    return _of(_ALNUM, length)


def hexa(length: int) -> str:
    return _of(_HEX, length)


def upper(length: int) -> str:
    return _of(_UPPER, length)


def lower(length: int) -> str:
    return _of(_LOWER, length)


def url64(length: int) -> str:
    return _of(_ALNUM, 1) + _of(_URL, length - 2) + _of(_ALNUM, 1)


def digits(length: int) -> str:
    return "1" + "".join(_DRAW.choice(string.digits) for _ in range(length - 1))


def uuid() -> str:
    return "-".join(hexa(length) for length in (8, 4, 4, 4, 12))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _jwt() -> str:
    return ".".join(("eyJ" + alnum(33), "eyJ" + alnum(60), url64(43)))


def _pem(kind: str, lines: int = 4, end: bool = True) -> str:
    body = "\n".join(["MII" + alnum(61), *(alnum(64) for _ in range(lines - 2)), alnum(30) + "=="])
    return f"-----BEGIN {kind}-----\n{body}" + (f"\n-----END {kind}-----" if end else "")


_FORMS: dict[str, str] = {
    **{f"GitHub {kind}": f"gh{kind}_" + alnum(36) for kind in "pousr"},
    "GitHub fine-grained": "github" + "_pat_" + alnum(22) + "_" + alnum(59),
    **{f"GitLab {kind}": f"gl{kind}-" + url64(20) for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "oas", "soat", "ffct")},
    "GitLab routable": "gl" + "pat-" + url64(27) + ".01." + lower(9),
    "GitLab runner": "GR13" + "48941" + url64(20),
    "Bitbucket app password": "ATBB" + alnum(32),
    "Atlassian": "ATATT3" + "xFfGF0" + url64(180) + "=" + upper(8),
    "Trello": "ATTA" + hexa(64),
    "npm": "npm" + "_" + alnum(36),
    "PyPI": "pypi" + "-AgEIcHlwaS5vcmc" + url64(150),
    "TestPyPI": "pypi" + "-AgENdGVzdC5weXBpLm9yZw" + url64(150),
    "RubyGems": "ruby" + "gems_" + hexa(48),
    "crates.io": "cio" + alnum(32),
    "NuGet": "oy2" + lower(43),
    "Docker": "dckr" + "_pat_" + url64(27),
    "Packagist": "packagist" + "_uut_" + alnum(68),
    "Clojars": "CLOJARS" + "_" + lower(60),
    "Artifactory": "AKCp" + alnum(69),
    "Artifactory reference": "cmVmd" + alnum(59),
    "Sourcegraph": "sgp" + "_" + hexa(40),
    "OpenAI of old": "sk" + "-" + alnum(20) + "T3BlbkFJ" + alnum(20),
    "OpenAI project": "sk" + "-proj-" + url64(74) + "T3BlbkFJ" + url64(74),
    "OpenAI service": "sk" + "-svcacct-" + url64(74) + "T3BlbkFJ" + url64(74),
    "OpenAI admin": "sk" + "-admin-" + url64(58) + "T3BlbkFJ" + url64(58),
    "Anthropic": "sk" + "-ant-api03-" + url64(93) + "AA",
    "Anthropic login": "sk" + "-ant-oat01-" + url64(93) + "AA",
    "Anthropic admin": "sk" + "-ant-admin01-" + url64(93) + "AA",
    "OpenRouter": "sk" + "-or-v1-" + hexa(64),
    "DeepSeek": "sk" + "-" + hexa(32),
    "Kimi": "sk" + "-kimi-" + alnum(64),
    "Hugging Face": "hf" + "_" + alnum(34),
    "Hugging Face organisation": "api" + "_org_" + alnum(34),
    "Groq": "gsk" + "_" + alnum(52),
    "Replicate": "r8" + "_" + alnum(37),
    "xAI": "xai" + "-" + alnum(80),
    "Perplexity": "pplx" + "-" + alnum(48),
    "Cerebras": "csk" + "-" + lower(48),
    "LangSmith": "lsv2" + "_pt_" + hexa(32) + "_" + hexa(10),
    "Langfuse": "sk" + "-lf-" + uuid(),
    "Pinecone": "pcsk" + "_" + alnum(6) + "_" + alnum(62),
    "Nvidia": "nvapi" + "-" + url64(64),
    "Tavily": "tvly" + "-dev-" + alnum(32),
    "Firecrawl": "fc" + "-" + hexa(32),
    "Jina": "jina" + "_" + hexa(32) + url64(28),
    "E2B": "e2b" + "_" + hexa(40),
    "AWS key id": "AKIA" + upper(16),
    "AWS session key id": "ASIA" + upper(16),
    "Google API": "AIza" + "Sy" + url64(33),
    "Google AI of late": "AQ." + "Ab8" + url64(47),
    "Google OAuth": "ya29" + ".a0" + url64(60),
    "Google refresh": "1//0" + "e" + url64(60),
    "Google client": "GOCSPX" + "-" + url64(28),
    "Alibaba": "LTAI" + "5t" + alnum(18),
    "Tencent": "AKID" + alnum(32),
    "DigitalOcean": "dop" + "_v1_" + hexa(64),
    "DigitalOcean OAuth": "doo" + "_v1_" + hexa(64),
    "Cloudflare origin CA": "v1.0" + "-" + hexa(24) + "-" + hexa(146),
    "Heroku": "HRKU" + "-AA" + url64(58),
    "Fly": "fo1" + "_" + url64(43),
    "Fly macaroon": "fm2" + "_" + alnum(120),
    "Vercel": "vcp" + "_" + alnum(56),
    "Netlify": "nfp" + "_" + alnum(36),
    "Supabase": "sbp" + "_" + hexa(40),
    "Supabase secret": "sb" + "_secret_" + url64(22) + "_" + alnum(8),
    "Render": "rnd" + "_" + alnum(28),
    "Neon": "napi" + "_" + lower(64),
    "PlanetScale": "pscale" + "_tkn_" + url64(43),
    "PlanetScale password": "pscale" + "_pw_" + url64(43),
    "Databricks": "dapi" + hexa(32),
    "Stripe": "sk" + "_live_" + alnum(24),
    "Stripe long": "sk" + "_live_51" + alnum(97),
    "Stripe restricted": "rk" + "_live_" + alnum(24),
    "Stripe test": "sk" + "_test_" + alnum(24),
    "Stripe webhook": "whsec" + "_" + alnum(32),
    "ElevenLabs": "sk" + "_" + hexa(48),
    "Square": "sq0" + "atp-" + url64(22),
    "Square secret": "sq0" + "csp-" + url64(43),
    "Square of late": "EAAA" + "l" + url64(59),
    "Facebook": "EAA" + "C" + alnum(150),
    "PayPal": "A21AA" + url64(92),
    "Braintree": "access" + "_token$production$" + lower(16) + "$" + hexa(32),
    **{f"Shopify {kind}": f"shp{kind}_" + hexa(32) for kind in ("at", "ca", "pa", "ss")},
    "Razorpay": "rzp" + "_live_" + alnum(14),
    "Flutterwave": "FLWSECK" + "_TEST-" + hexa(32) + "-X",
    "EasyPost": "EZAK" + alnum(54),
    "Shippo": "shippo" + "_live_" + hexa(40),
    "Duffel": "duffel" + "_live_" + url64(43),
    "Plaid": "access" + "-production-" + uuid(),
    "Slack bot": "xoxb" + "-" + digits(12) + "-" + digits(13) + "-" + alnum(24),
    "Slack user": "xoxp" + "-" + digits(12) + "-" + digits(12) + "-" + digits(13) + "-" + hexa(32),
    "Slack app": "xapp" + "-1-A" + upper(10) + "-" + digits(13) + "-" + hexa(64),
    "Slack rotating": "xoxe" + ".xoxp-1-" + alnum(160),
    "Slack refresh": "xoxe" + "-1-" + alnum(146),
    "Slack browser": "xoxc" + "-" + digits(12) + "-" + digits(12) + "-" + hexa(64),
    "Slack webhook": "https://hooks.slack.com/" + "services/T" + upper(8) + "/B" + upper(10) + "/" + alnum(24),
    "Slack workflow": "https://hooks.slack.com/" + "workflows/T" + upper(8) + "/A" + upper(10) + "/" + digits(18) + "/" + alnum(24),
    "Discord webhook": "https://discord.com/" + "api/webhooks/" + digits(18) + "/" + url64(68),
    "Discord bot": "MT" + alnum(24) + "." + alnum(6) + "." + url64(38),
    "Teams webhook": "https://acme.webhook.office.com/" + "webhookb2/" + uuid() + "@" + uuid() + "/IncomingWebhook/" + hexa(32) + "/" + uuid(),
    "Google Chat webhook": "https://chat.googleapis.com/" + "v1/spaces/AAAA" + alnum(7) + "/messages?key=AI" + alnum(37) + "&token=" + url64(43),
    "Zapier webhook": "https://hooks.zapier.com/" + "hooks/catch/" + digits(7) + "/" + lower(7),
    "Telegram": digits(10) + ":AA" + url64(33),
    "Twilio key": "SK" + hexa(32),
    "SendGrid": "SG" + "." + url64(22) + "." + url64(43),
    "Mailgun": "key" + "-" + hexa(32),
    "Mailchimp": hexa(32) + "-us14",
    "Brevo": "xkeysib" + "-" + hexa(64) + "-" + alnum(16),
    "Resend": "re" + "_" + alnum(8) + "_" + alnum(24),
    "New Relic user": "NRAK" + "-" + upper(27),
    "New Relic licence": hexa(36) + "NRAL",
    "New Relic insights": "NRII" + "-" + url64(32),
    "Grafana": "glsa" + "_" + alnum(32) + "_" + hexa(8),
    "Grafana cloud": "glc" + "_eyJ" + alnum(80),
    "Grafana of old": "eyJrIjoi" + alnum(80),
    "Sentry": "sntrys" + "_eyJpYXQiO" + alnum(80) + "_" + alnum(43),
    "Sentry user": "sntryu" + "_" + hexa(64),
    "Honeycomb": "hcaik" + "_" + lower(58),
    "Dynatrace": "dt0c01" + "." + upper(24) + "." + upper(64),
    "Linear": "lin" + "_api_" + alnum(40),
    "Notion": "ntn" + "_" + digits(11) + alnum(35),
    "Notion of old": "secret" + "_" + alnum(43),
    "Airtable": "pat" + alnum(14) + "." + hexa(64),
    "Figma": "figd" + "_" + url64(40),
    "Postman": "PMAK" + "-" + hexa(24) + "-" + hexa(34),
    "Typeform": "tfp" + "_" + url64(59),
    "HubSpot": "pat" + "-na1-" + uuid(),
    "Contentful": "CFPAT" + "-" + url64(43),
    "Doppler": "dp.pt" + "." + alnum(43),
    "Doppler service": "dp.st" + ".prd." + alnum(43),
    "1Password": "ops" + "_eyJ" + alnum(300),
    "1Password key": "A3" + "-" + upper(6) + "-" + upper(11) + "-" + upper(5) + "-" + upper(5) + "-" + upper(5),
    "Vault": "hvs" + "." + url64(90),
    "Vault batch": "hvb" + "." + url64(140),
    "Terraform": alnum(14) + ".atlasv1." + url64(67),
    "Pulumi": "pul" + "-" + hexa(40),
    "Tailscale": "tskey" + "-auth-" + alnum(17) + "CNTRL-" + alnum(32),
    "CircleCI": "CCIPAT" + "_" + alnum(22) + "_" + hexa(40),
    "Buildkite": "bkua" + "_" + hexa(40),
    "SonarQube": "squ" + "_" + hexa(40),
    "Prefect": "pnu" + "_" + alnum(36),
    "Octopus": "API" + "-" + upper(27),
    "OpenShift": "sha256" + "~" + url64(43),
    "LaunchDarkly": "sdk" + "-" + uuid(),
    "Adafruit": "aio" + "_" + alnum(28),
    "Adobe": "p8e" + "-" + lower(32),
    "Asana": "1/" + digits(16) + ":" + hexa(32),
    "Azure client secret": alnum(3) + "8Q" + "~" + url64(34),
    "Azure DevOps": alnum(76) + "AZDO" + alnum(4),
    "Azure functions": url64(44) + "AzFu" + alnum(6) + "==",
    "Azure storage": alnum(76) + "+ASt" + alnum(6) + "==",
    "MaxMind": alnum(6) + "_" + alnum(29) + "_mmk",
    "age": "AGE-SECRET" + "-KEY-1" + upper(58),
    "JSON web token": _jwt(),
    "JSON web token, encrypted": "eyJ" + alnum(40) + ".." + url64(16) + "." + url64(60) + "." + url64(22),
    # the issuers of 2025 and 2026
    "GitHub stateless": "ghs" + "_" + digits(7) + "_" + _jwt(),
    "Anthropic refresh": "sk" + "-ant-ort01-" + url64(93) + "AA",
    "Anthropic session": "sk" + "-ant-sid01-" + url64(93) + "AA",
    "OpenAI, no project": "sk" + "-None-" + url64(74) + "T3BlbkFJ" + url64(74),
    "Windsurf": "sk" + "-ws-01-" + url64(60),
    "Helicone": "sk" + "-helicone-" + lower(7) + "-" + lower(7) + "-" + lower(7) + "-" + lower(7),
    "LiteLLM": "sk" + "-" + url64(22),
    "Amp": "sgamp" + "_user_" + upper(26) + "_" + hexa(64),
    "Cursor": "crsr" + "_" + hexa(64),
    "Cursor of old": "key" + "_" + hexa(64),
    "Fireworks": "fw" + "_" + alnum(24),
    "Together": "tgp" + "_v1_" + url64(43),
    "Voyage": "pa" + "-" + url64(43),
    "LlamaCloud": "llx" + "-" + alnum(48),
    "Brave Search": "BSA" + url64(28),
    "E2B access": "sk" + "_e2b_" + hexa(40),
    "Modal": "as" + "-" + alnum(22),
    "RunPod": "rpa" + "_" + upper(46),
    "Daytona": "dtn" + "_" + hexa(64),
    "Browserbase": "bb" + "_live_" + url64(27),
    "Cartesia": "sk" + "_car_" + alnum(22),
    "Mem0": "m0" + "-" + alnum(40),
    "Chroma": "ck" + "-" + alnum(44),
    "Turbopuffer": "tpuf" + "_" + alnum(32),
    "Braintrust": "bt" + "-st-" + alnum(48),
    "Portkey": "pk" + "-live-" + alnum(28),
    "Hugging Face OAuth": "hf" + "_oauth_" + _jwt(),
    "Weights & Biases": "wandb" + "_v1_" + url64(70),
    "AWS Bedrock": "ABSK" + "QmVkcm9ja0FQSUtleS" + alnum(90) + "=",
    "AWS Bedrock, short-lived": "bedrock" + "-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t" + alnum(200),
    "AWS S3 HMAC of Google": "GOOG" + "1E" + upper(56),
    "Cloudflare user": "cfut" + "_" + alnum(40) + hexa(8),
    "Cloudflare account": "cfat" + "_" + alnum(40) + hexa(8),
    "Cloudflare global": "cfk" + "_" + alnum(40) + hexa(8),
    "Neon password": "npg" + "_" + alnum(12),
    "Vercel Blob": "vercel" + "_blob_rw_" + alnum(16) + "_" + alnum(30),
    "Vercel AI": "vck" + "_" + alnum(56),
    "Supabase of late": "sbp" + "_v0_" + hexa(40),
    "Fly in a header": "FlyV1 " + "fm2_" + alnum(90) + "/" + alnum(30) + ",fm2_" + alnum(120),
    "Fly, two macaroons": "fm2" + "_" + alnum(120) + ",fm2_" + alnum(120),
    "Scaleway": "SCW" + upper(17),
    "UpCloud": "ucat" + "_" + upper(26),
    "Aiven": "aivenv1" + "_" + url64(80),
    "Xata": "xau" + "_" + alnum(40),
    "Depot": "depot" + "_project_" + hexa(64),
    "Tinybird": "p." + "eyJ" + alnum(60) + "." + url64(43),
    "dbt": "dbtc" + "_" + url64(40),
    "Confluent": "cflt" + alnum(60),
    "MongoDB Atlas": "mdb" + "_sa_sk_" + url64(40),
    "CockroachDB": "CCDB1" + "_" + alnum(22) + "_" + alnum(40),
    "PostHog": "phx" + "_" + alnum(47),
    "Axiom": "xaat" + "-" + uuid(),
    "Axiom ingest": "xapt" + "-" + uuid(),
    "Statsig": "secret" + "-" + alnum(43),
    "Stytch": "secret" + "-live-" + url64(36),
    "LaunchDarkly API": "api" + "-" + uuid(),
    "Trigger.dev": "tr" + "_prod_" + alnum(24),
    "Inngest": "signkey" + "-prod-" + hexa(64),
    "Cal.com": "cal" + "_live_" + hexa(32),
    "Calendly": _jwt() + "-" + alnum(8),
    "Polar": "polar" + "_oat_" + alnum(43),
    "Paddle": "pdl" + "_live_apikey_" + lower(26) + "_" + alnum(22) + "_" + alnum(3),
    "Mollie": "live" + "_" + alnum(30),
    "Adyen": "AQE" + alnum(80) + "-" + alnum(43) + "=-" + alnum(16),
    "Checkly": "cu" + "_" + hexa(32),
    "Socket": "sktsec" + "_" + url64(44) + "_api",
    "GitBook": "gb" + "_api_" + alnum(40),
    "PubNub": "sec" + "-c-" + _b64(uuid()),
    "Intercom": "dG9r" + "Ojk" + alnum(54) + "=",
    "Mailgun of late": hexa(32) + "-" + hexa(8) + "-" + hexa(8),
    "Mandrill": "md" + "-" + url64(22),
    "Okta": "00" + url64(40),
    "Salesforce": "00D" + alnum(12) + "!AQ" + alnum(90),
    "Harness": "pat" + "." + url64(22) + "." + hexa(24) + "." + alnum(20),
    "Buildkite cluster": "bkct" + "_" + hexa(64),
    "Infracost": "ico" + "-" + alnum(32),
    "Snyk service": "snyk" + "_sat." + url64(60),
    "CircleCI project": "CCIPRJ" + "_" + alnum(22) + "_" + hexa(40),
    "Bitwarden": "0." + uuid() + "." + alnum(30) + ":" + _b64(alnum(16)),
    "ClickUp": "pk" + "_" + digits(8) + "_" + upper(32),
    "Retool": "retool" + "_" + lower(26),
    "Yandex of late": "y0" + "_" + url64(55),
    "Yandex IAM": "t1." + url64(150) + "." + url64(86),
    "VK": "vk1" + ".a." + url64(120),
    "Slack legacy workspace": "xoxa" + "-2-" + digits(12) + "-" + digits(12) + "-" + hexa(32),
    "Discord MFA": "mfa" + "." + url64(84),
    "Twitch": "oauth:" + lower(30),
    "hash of a password, bcrypt": "$2b" + "$12$" + alnum(53),
    "hash of a password, sha512": "$6" + "$" + alnum(16) + "$" + alnum(86),
    "hash of a password, apr1": "$apr1" + "$" + alnum(8) + "$" + alnum(22),
    "hash of a password, argon2": "$argon2id" + "$v=19$m=65536,t=3,p=4$" + alnum(22) + "$" + alnum(43),
}  # fmt: skip

BY_FORM = tuple(
    Shape(name, token, (token[5:] if name != "hash of a password, bcrypt" else token[8:],))
    for name, token in _FORMS.items()
)
"""Redacted in any place."""


def _keys() -> list[Shape]:
    shapes = []
    for kind in (
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ):
        key = _pem(kind)
        shapes.append(Shape(kind, key, tuple(key.splitlines()[1:-1])))
    key = _pem("RSA PRIVATE " + "KEY")
    lines = tuple(key.splitlines()[1:-1])
    one = key.replace("\n", "\\n")
    shapes += [
        Shape("key on one line", one, lines),
        Shape("key in JSON", json.dumps({"type": "service_account", "private_key": key}), lines),
        Shape("key in JSON in JSON", json.dumps({"log": json.dumps({"private_key": key})}), lines),
        Shape("key cut off", key[: key.index("=")], lines[:3]),
        Shape("key cut off after a line", "\n".join(key.splitlines()[:2]), lines[:1]),
        Shape("end of a key", "…\n" + "\n".join(key.splitlines()[2:]), lines[1:]),
        Shape("key with headers", key.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC," + upper(32) + "\n\n", 1), lines),
        Shape("key with headers, cut off", key.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n", 1)[:200], lines[:1]),
        Shape("key quoted", "\n".join(f"> {line}" for line in key.splitlines()), lines),
        Shape("key in YAML", "tls:\n  key: |\n" + "\n".join(f"    {line}" for line in key.splitlines()), lines),
        Shape("key in base64", "client-key-data: " + _b64(key), (_b64(key)[40:],)),
        Shape("key with spaces for line ends", key.replace("\n", " "), lines),
        Shape("key with Windows line ends", key.replace("\n", "\r\n"), lines),
        Shape("key in a source file", '"' + '\\n" +\n  "'.join(key.splitlines()) + '"', lines),
    ]  # fmt: skip
    putty = "\n".join(alnum(64) for _ in range(3))
    text = f"PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 3\n{putty}\nPrivate-MAC: {hexa(40)}"
    shapes.append(Shape("PuTTY key", text, tuple(putty.splitlines())))
    ssh2 = alnum(70)
    shapes.append(
        Shape(
            "SSH2 key",
            f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{ssh2}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
            (ssh2,),
        )
    )
    part = url64(43)
    shapes.append(
        Shape(
            "JSON web key", json.dumps({"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tL", "d": part}), (part,)
        )
    )
    return shapes


KEYS = tuple(_keys())

_P = "Hunter2" + "-Zx9Qm"
_W = "sword" + "fish"

_PLACES: tuple[tuple[str, str], ...] = (
    ("PASSWORD={}", _P), ("DB_PASSWORD={}", _W), ("export GITHUB_TOKEN={}", _P), ("set -x FOO_SECRET {}", _P),
    ("export FOO_TOKEN='{}'", _P), ("setenv API_TOKEN {}", _P), ("$env:API_KEY = \"{}\"", _P), ("ENV API_KEY={}", _P), ("ENV DB_PASSWORD {}", _P),
    ("ARG NPM_TOKEN={}", _P), ("AWS_SECRET_ACCESS_KEY={}", alnum(20) + "/" + alnum(19)), ("aws_secret_access_key = {}", alnum(20) + "+" + alnum(19)),
    ("aws_session_token = {}", "IQoJb3JpZ2luX2Vj" + alnum(200)), ("AWS_SESSION_TOKEN={}", "FwoGZXIvYXdz" + alnum(200) + "=="),
    ("\"SecretAccessKey\": \"{}\"", alnum(40)), ("\"SessionToken\": \"{}\"", alnum(120)),
    ("SECRET_KEY_BASE={}", hexa(128)), ("RAILS_MASTER_KEY={}", hexa(32)), ("APP_KEY=base64:{}", alnum(43) + "="), ("DJANGO_SECRET_KEY='{}'", "x7!" + alnum(40)),
    ("OPENAI_API_KEY='{}'", _P), ("DD_API_KEY={}", hexa(32)), ("DD_APP_KEY: {}", hexa(40)), ("datadog_api_key = \"{}\"", hexa(32)),
    ("HEROKU_API_KEY={}", uuid()), ("CLOUDFLARE_API_TOKEN={}", url64(40)), ("CLOUDFLARE_API_KEY={}", hexa(37)), ("MISTRAL_API_KEY={}", alnum(32)),
    ("CO_API_KEY={}", alnum(40)), ("COHERE_API_KEY: {}", alnum(40)), ("TWILIO_AUTH_TOKEN={}", hexa(32)), ("PAGERDUTY_API_KEY={}", url64(20)),
    ("OKTA_API_TOKEN={}", "00" + url64(40)), ("AUTH0_CLIENT_SECRET={}", url64(64)), ("SNOWFLAKE_PASSWORD={}", _P), ("AIRTABLE_API_KEY={}", "key" + alnum(14)),
    ("SENTRY_AUTH_TOKEN={}", hexa(64)), ("VAULT_TOKEN={}", "s." + alnum(24)), ("ALGOLIA_ADMIN_KEY={}", hexa(32)), ("CODECOV_TOKEN={}", uuid()),
    ("SNYK_TOKEN={}", uuid()), ("PAYPAL_CLIENT_SECRET={}", url64(80)), ("MAILGUN_SIGNING_KEY={}", hexa(32)), ("DISCORD_CLIENT_SECRET={}", url64(32)),
    ("API_KEY_2={}", _P), ("TOKEN={}", "abcdef" + "gh"), ("password={}", "super" + "secret"), ("PGPASSWORD={} psql -h db", _P), ("MYSQL_PWD={} mysqldump", _P),
    ("https://host/path?token={}&page=2", _P), ("https://host/path?page=2&api_key={}", _P), ("https://host/x?access_token={}", alnum(40)),
    ("https://acme.blob.core.windows.net/c/f?sv=2022-11-02&se=2030-01-01&sr=b&sp=r&sig={}", alnum(43) + "%3D"),
    ("https://b.s3.amazonaws.com/f?X-Amz-Expires=900&X-Amz-Signature={}", hexa(64)),
    ("https://prod-1.logic.azure.com/workflows/1/triggers/manual?api-version=1&sig={}", url64(43)),
    ("SharedAccessSignature=sv=2022-11-02&ss=b&srt=sco&sig={}", alnum(43) + "%3D"),
    ("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net", alnum(86) + "=="),
    ("Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}", alnum(43) + "="),
    ("Server=db;Database=x;User Id=sa;Password={};Encrypt=true", _P), ("Data Source=db;UID=sa;PWD={};", _P), ("user=me;password={};host=db", _P),
    ("InstrumentationKey={};IngestionEndpoint=https://x.example", uuid()), ("jdbc:mysql://db/x?user=me&password={}", _P),
    ("jdbc:sqlserver://db;user=sa;password={}", _P), ("host=db user=me password={} dbname=x", _P),
    ("password: {}", _P), ("password: {}", "correct" + "-horse-battery"), ("Passwort / password : {}", _P), ("api_key: {}", _P), ("apiKey: '{}'", _P),
    ("clientSecret: {}", _P), ("access_token := {}", _P), ("token => '{}'", _P), ("db.password={}", _P), ("spring.datasource.password={}", _W), ("spring.datasource.password = {}", _P),
    ('{{"password": "{}"}}', _P), ('{{"password":"{}", "user": "me"}}', _W), ('{{"accessToken" : "{}"}}', _P), ('{{"private_key": "{}"}}', _P),
    ("{{'client_secret': '{}'}}", _P), ('{{"refresh_token": "{}"}}', alnum(60)), ('log: "{{\\"api_key\\": \\"{}\\"}}"', _P), ('token = "{}"', "s3cr" + "et-value"),
    ('{{"apiKey": "{}"}}', _P), ('{{"api-key": "{}"}}', _P), ('{{"name": "DB_PASSWORD", "value": "{}"}}', _W), ("- name: DB_PASSWORD\n  value: {}", _P),
    ('{{"key": "ACCESS_TOKEN", "value": "{}"}}', _P), ('password = "{}"', _W), ('variable "db_password" {{\n  type = string\n  default = "{}"\n}}', _W),
    ("<password>{}</password>", _W), ("<Password>{}</Password>", _P), ("<apiKey>{}</apiKey>", _P), ("<ns:clientSecret>{}</ns:clientSecret>", _P),
    ('<add key="ApiToken" value="{}"/>', _W), ('<property name="hibernate.connection.password" value="{}"/>', _P), ('<entry key="db.password">{}</entry>', _W),
    ("<server><username>me</username><password>{}</password></server>", _P), ("define('AUTH_KEY', '{}');", "k#9" + alnum(40)), ("define( 'DB_PASSWORD', '{}' );", _W),
    ("config['password'] = '{}'", _W), ("os.environ[\"API_TOKEN\"] = \"{}\"", _W), ("process.env.API_KEY = '{}'", _W), ("password: \"{}\"", _W), ("const apiKey = `{}`;", _P),
    ("String password = \"{}\";", _W), ("$password = '{}';", _W), ("private static final String SECRET = \"{}\";", _P), ("auth_token=>\"{}\"", _P), ("--header 'X-Vault-Token: {}'", "s." + alnum(24)),
    ("Authorization: Bearer {}", _P), ("Authorization: Basic {}", _b64("user:pass" + "word")), ("authorization: token {}", _P), ("-H 'Authorization: Bearer {}'", _P),
    ('"Authorization": "Bearer {}"', _P), ("Authorization: {}", alnum(32)), ("Authorization: Token token={}", url64(20)), ("Proxy-Authorization: Basic {}", _b64("a:long" + "er-one")),
    ('Authorization: Digest username="me", realm="x", nonce="n", response="{}"', hexa(32)), ("Authorization: AWS4-HMAC-SHA256 Credential=AK/x, Signature={}", hexa(64)),
    ("Authorization: SSWS {}", "00" + url64(40)), ("Authorization: ApiKey {}", _b64("id:" + alnum(22))), ("Authorization: Negotiate {}", "YII" + alnum(100)), ("Authorization: GenieKey {}", uuid()),
    ("headers = {{'Authorization': 'Bearer ' + '{}'}}", alnum(32)), ("X-Api-Key: {}", _P), ("x-api-key: {}", alnum(40)), ("PRIVATE-TOKEN: {}", _P), ("X-Auth-Token: {}", hexa(32)), ("DD-API-KEY: {}", hexa(32)),
    ("Ocp-Apim-Subscription-Key: {}", hexa(32)), ("x-functions-key: {}", url64(54)), ("X-Amz-Security-Token: {}", alnum(100)), ("apikey: {}", alnum(32)), ("X-Csrf-Token: {}", alnum(32)),
    ("curl with Bearer {} works", "q8Zt3" + alnum(20)), ("Cookie: sid={}", _P), ("Cookie: a=b; session={}", alnum(32)), ("Set-Cookie: session={}; Path=/; HttpOnly", _P), ("set-cookie: connect.sid=s%3A{}", alnum(32)),
    ("curl -b 'session={}' https://x.example", alnum(32)), ("--password {}", _P), ("--api-key {}", _P), ("--token={}", _P), ("--client-secret {}", _P), ("tool --db-password={} run", _W),
    ("mysql -u root -p{} shop", _P), ("mysql -u root -p {}", _P), ("mysqldump -h db -uroot -p'{}' shop", _P), ("curl -u admin:{} https://x.example", _P), ("curl -su 'admin:{}' https://x.example", _W),
    ("curl --user admin:{} https://x.example", _W), ("sshpass -p {} ssh me@host", _P), ("docker login -u me -p {} registry.example", _P), ("redis-cli -h r -a {}", _P), ("wget --http-password={} https://x.example", _P),
    ("ldapsearch -D cn=me -w {} -b dc=x", _P), ("openssl rsa -passin pass:{} -in k", _P), ("htpasswd -b .htpasswd me {}", _P), ("zip -P {} a.zip f", _P), ("7z x -p{} a.7z", _P), ("smbclient //s/x -U me%{}", _P),
    ("http -a me:{} https://x.example", _P), ("keytool -storepass {} -list", _P), ("az login --service-principal -u id -p {} --tenant t", _P), ("gpg --batch --passphrase {} -d f", _P), ("mongosh -u me -p {} db", _P),
    ("postgres://app:{}@db.internal:5432/app", _P), ("postgresql+psycopg://app:{}@db/app", _W), ("mysql://root:{}@127.0.0.1/x", _P), ("mongodb+srv://me:{}@cluster0.abc.mongodb.net/x", _P),
    ("redis://:{}@localhost:6379", _P), ("amqps://me:{}@mq.example/v", _P), ("https://user:{}@example.com/x", _P), ("ftp://me:{}@files.example", _W), ("smtp://me%40x.example:{}@mail.example:587", _P),
    ("ldap://cn=me:{}@ldap.example", _P), ("cloudinary://" + "123456789012345:{}@acme", alnum(27)), ("https://{}@github.com/org/repo.git", hexa(40)), ("https://x-access-token:{}@github.com/o/r", alnum(40)),
    ("https://{}@o123.ingest.sentry.io/4501", hexa(32)), ("git clone https://oauth2:{}@gitlab.example/o/r.git", _P), ("postgres://app:{}@db/app", "p/" + "a5s9/" + alnum(8)), ("admin:{}@db.example:5432", _P), ("me:{}@10.0.0.5:6379/0", "Zx9" + alnum(8)),
    ("machine api.example login me password {}", _W), ("machine api.example\n  login me\n  password {}", _P), ("default login anonymous password {}", _W),
    ("//registry.npmjs.example/:_authToken={}", uuid()), ("_auth={}", _b64("me:" + alnum(12))), ("//r.example/:_password=\"{}\"", _b64(alnum(12))), ("[pypi]\nusername = __token__\npassword = {}", _P), ("[pypi]\nusername: me\npassword: {}", _P),
    ('{{"auths": {{"r.example": {{"auth": "{}"}}}}}}', _b64("me:" + "password-7x")), ('{{"auths":{{"r.example":{{"identitytoken":"{}"}}}}}}', alnum(60)), ("users:\n- name: me\n  user:\n    token: {}", alnum(40)),
    ("users:\n- name: me\n  user:\n    password: {}", _P), ("apiVersion: v1\nkind: Secret\ndata:\n  password: {}", _b64("s3cr" + "et-word-1")), ("me:{}", "$2y" + "$05$" + alnum(53)), ("me:{{SHA}}{}", alnum(27) + "="),
    ("root:{}:19000:0:99999:7:::", "$6" + "$" + alnum(16) + "$" + alnum(86)), ("pbkdf2_sha256$260000$abc${}", alnum(43) + "="), ("passphrase: '{}'", "correct horse 7 " + "battery"), ("PrivateKey = {}", alnum(43) + "="), ("PresharedKey = {}", alnum(43) + "="),
    ("the password is {}", _P), ("Your token is: {}", alnum(24)), ("I set the API key to {} yesterday", alnum(24)), ("client_secret={}&grant_type=x", _P), ("WEBHOOK_URL=https://x.example/hook/{}", alnum(40)),
    ("encryption_key: \"{}\"", alnum(32)), ("signingKey = '{}'", alnum(32)), ("jwt_secret: {}", _P), ("session_key={}", _P), ("GPG_PASSPHRASE={}", _P), ("SSH_KEY_PASSPHRASE: {}", _P), ("https://x-dsn.algolia.net/1/x?x-algolia-api-key={}", hexa(32)), ("https://oapi.dingtalk.com/robot/send?access_token={}", hexa(64)),
    ("https://acme.app.n8n.cloud/webhook/{}", uuid()), ("https://hook.eu1.make.com/{}", lower(32)), ("https://open.larksuite.com/open-apis/bot/v2/hook/{}", uuid()), ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", uuid()),
    ("EXA_API_KEY={}", uuid()), ("RAILWAY_TOKEN={}", uuid()), ("SEMGREP_APP_TOKEN={}", hexa(64)), ("POSTMARK_SERVER_TOKEN={}", uuid()), ("JENKINS_API_TOKEN={}", "11" + hexa(32)), ("Cookie: _gitlab_session={}", hexa(32)), ("license_key: {}", upper(5) + "-" + upper(5) + "-" + upper(5)),
)  # fmt: skip

BY_PLACE = tuple(
    Shape(f"{number}: {form[:40]!r}", form.format(secret), (secret,)) for number, (form, secret) in enumerate(_PLACES)
)
"""Secrets by name or place: redacted there."""


def _wrapped(token: str, width: int, indent: str = "") -> str:
    return ("\n" + indent).join(token[at : at + width] for at in range(0, len(token), width))


def _disguises() -> list[Shape]:
    github, fine, openai, jwt = (
        _FORMS[name] for name in ("GitHub p", "GitHub fine-grained", "OpenAI project", "JSON web token")
    )
    half = len(github) // 2
    first, second = github[:half], github[half:]
    shapes = [
        Shape(f"token with {name} in it", f"use {first}{between}{second} now", (first[4:], second))
        for name, between in (
            ("a colour", "\x1b[0m"), ("a long colour", "\x1b[38;5;196m"), ("a title", "\x1b]0;x\x07"), ("a zero-width space", "\u200b"), ("a joiner", "\u2060"),
            ("a soft hyphen", "\u00ad"), ("a byte order mark", "\ufeff"), ("a bidi mark", "\u202e"), ("a tag", "\U000e0041"), ("a NUL", "\x00"), ("a bell", "\x07"), ("a colour made visible", "\ufffd[0m"),
            ("an escaped zero-width space", "\\u200b"), ("an escaped colour", "\\u001b[0m"), ("a variation selector", "\ufe0f"),
        )
    ]  # fmt: skip
    spread = "\u200b".join(github)
    shapes.append(Shape("token with a zero-width space everywhere", spread, (spread[10:],)))
    shapes.append(Shape("coloured token", f"\x1b[32m{github}\x1b[0m", (github[4:],)))
    shapes.append(Shape("coloured name", f"\x1b[1mPASSWORD\x1b[0m=\x1b[32m{_P}\x1b[0m", (_P,)))
    for name, token, width, indent in (
        ("GitHub", github, 22, ""),
        ("fine-grained", fine, 40, "    "),
        ("OpenAI", openai, 60, "  "),
        ("web", jwt, 64, "> "),
    ):
        wrapped = _wrapped(token, width, indent)
        pieces = tuple(piece.strip("> ") for piece in wrapped.split("\n"))
        shapes.append(
            Shape(
                f"{name} token, wrapped",
                f"it is\n{wrapped}\nand no more",
                (pieces[0][12:], *(each for each in pieces[1:] if len(each) > 9)),
            )
        )
    value: object = {"token": _P, "note": github}
    text = json.dumps(value)
    for depth in range(1, 5):
        shapes.append(Shape(f"JSON in JSON, {depth} deep", text, (_P, github[4:])))
        text = json.dumps({"log": text})
    encoded = _b64(f"the key is {github} indeed")
    shapes += [
        Shape("base64 of a text", f"payload {encoded} end", (encoded[8:],)),
        Shape("base64 of base64", _b64(encoded), (_b64(encoded)[8:],)),
        Shape("base64 for addresses", base64.urlsafe_b64encode(f"??>> {github}".encode()).decode(), (base64.urlsafe_b64encode(f"??>> {github}".encode()).decode()[8:],)),
        Shape("base64 of an assignment", _b64(f"DB_PASSWORD={_P}"), (_b64(f"DB_PASSWORD={_P}")[4:],)),
        Shape("base64 of JSON", _b64(json.dumps({"password": _P})), (_b64(json.dumps({"password": _P}))[4:],)),
        Shape("base64 in an address", "data:text/plain;base64," + encoded, (encoded[8:],)),
        Shape("base64, wrapped", base64.encodebytes(f"{'#' * 70} {github} {'#' * 70}".encode()).decode(), (_b64(f"{'#' * 70} {github} {'#' * 70}")[100:140],)),
        Shape("percent-encoded", quote(f"x&password={_P}&y", safe=""), (_P,)),
        Shape("percent-encoded twice", quote(quote(f"x&password={_P}&y", safe=""), safe=""), (_P,)),
        Shape("every character percent-encoded", "".join(f"%{ord(each):02X}" for each in github), ("".join(f"%{ord(each):02X}" for each in github)[15:],)),
        Shape("escaped", "".join(f"\\u{ord(each):04x}" for each in github), ("".join(f"\\u{ord(each):04x}" for each in github)[30:],)),
        Shape("entities", f"&quot;password&quot;:&quot;{_P}&quot;", (_P,)),
        Shape("numbered entities", github.replace("_", "&#95;"), (github[4:],)),
        Shape("in hex", github.encode().hex(), (github.encode().hex()[10:],)),
        Shape("JSON in base64 in JSON", json.dumps({"data": _b64(json.dumps({"env": f"TOKEN={_P}"}))}), (_b64(json.dumps({"env": f"TOKEN={_P}"}))[4:],)),
    ]  # fmt: skip
    return shapes


DISGUISED = tuple(_disguises())

SHAPES: tuple[Shape, ...] = (*BY_FORM, *KEYS, *BY_PLACE, *DISGUISED)
