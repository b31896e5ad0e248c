"""Shapes written before the rules that they try (ruling N7): by form, name, place, language.

They alternate between two halves. `LOOKED_AT` may be read by who writes a rule; `HELD_OUT` is only counted.
"""

from tests.secrets.secret_shapes import Shape, alnum, digits, hexa, lower, upper, url64, uuid

_P, _W = "Kw7-" + "pqXz42Lm", "blue" + "monkey"
_A, _H, _B = alnum(32), hexa(40), alnum(44)

_BY_PLACE: tuple[tuple[str, str], ...] = (
    # arguments as lists
    ('["--password", "{}"]', _P), ("['mysql', '-u', 'root', '--password', '{}']", _W), ('["login", "--token", "{}"]', _A), ('args: ["--api-key", "{}"]', _A),
    ("subprocess.run(['psql', '--password', '{}'])", _P), ('CMD ["app", "--db-password", "{}"]', _P), ('command: ["redis-server", "--requirepass", "{}"]', _W), ('spawn("gh", ["auth", "--with-token", "{}"])', _A),
    ("- --password\n- {}", _P), ('"args": ["--secret", "{}", "--verbose"]', _A), ("['-p', '{}', '--password', '{}']", _P), ('exec.Command("tool", "--token", "{}")', _A),
    # typed literals
    ("SecretStr('{}')", _P), ('password = SecretStr("{}")', _W), ('const apiKey: string = "{}";', _A), ("let password: String = '{}'", _P),
    ("password: str = '{}'", _W), ("token: Final[str] = '{}'", _A), ("const token = process.env.TOKEN || '{}'", _A), ('secret = os.environ.get("APP_SECRET", "{}")', _P),
    ("api_key = os.getenv('API_KEY') or '{}'", _A), ('private static final String PASSWORD = "{}";', _P), ('var dbPassword string = "{}"', _P), ('const char *password = "{}";', _W),
    ('#define WIFI_PASSWORD "{}"', _P), ('password := []byte("{}")', _P), ('token = b"{}"', _A), ("secret = r'{}'", _P),
    ('val apiKey = "{}"', _A), ('password = String("{}")', _P), ("new SecureString('{}')", _P), ('password: Optional[str] = "{}"', _P),
    ('public string ApiKey {{ get; set; }} = "{}";', _A), ("process.env.DB_PASSWORD ?? '{}'", _P), ("ENV['SECRET_TOKEN'] || '{}'", _A), ('System.getenv("TOKEN") ?: "{}"', _A),
    ('password = Secret("{}")', _P), ('api_key = Field(default="{}")', _A), ("password = str('{}')", _P), ('static let apiKey = "{}"', _A), ('token = f"{}"', _A), ('password = """{}"""', _P),
    ("token = '''{}'''", _A), ('PASSWORD="""\n{}\n"""', _P), ("secret: `{}`", _P), ('password = Base64.decode("{}")', alnum(24)),
    # name after value
    ('{{"value": "{}", "name": "DB_PASSWORD"}}', _P), ('{{"value":"{}","key":"API_TOKEN"}}', _A), ("- value: {}\n  name: DB_PASSWORD", _P), ('<add value="{}" key="ApiSecret"/>', _A),
    ('{{ value = "{}", name = "db_password" }}', _P), ('<property value="{}" name="password"/>', _P), ('{{"Value": "{}", "Name": "SECRET_KEY", "Type": "SecureString"}}', _A), ('{{"secret": true, "value": "{}"}}', _P),
    ("value: '{}'\n    name: AUTH_TOKEN", _A), ('{{"ParameterValue": "{}", "ParameterKey": "MasterPassword"}}', _P), ('{{"ParameterKey": "MasterPassword", "ParameterValue": "{}"}}', _P), ('{{"name": "API_KEY", "type": "secret", "value": "{}"}}', _A),
    # headers
    ("X-Vault-Token: {}", _A), ("X-Auth-Key: {}", _H), ("X-API-Key: {}", _A), ("x-goog-api-key: {}", _A), ("X-Auth-Token: {}", _A), ("X-Shopify-Access-Token: {}", _A), ("X-Gitlab-Token: {}", _A), ("Ocp-Apim-Subscription-Key: {}", _H),
    ("-H 'X-Consul-Token: {}'", uuid()), ("headers = {{'X-Api-Secret': '{}'}}", _A), ('"X-Figma-Token": "{}"', _A), ("DD-API-KEY: {}", hexa(32)), ("DD-APPLICATION-KEY: {}", _H), ("apikey: {}", _A), ("Proxy-Authorization: Basic {}", alnum(24)), ("X-MBX-APIKEY: {}", alnum(64)),
    ("Api-Token: {}", _A), ("X-RapidAPI-Key: {}", _A), ("X-Plex-Token={}", alnum(20)), ("fastly-key: {}", alnum(32)), ("Circle-Token: {}", _H), ("headers.set('X-Token', '{}')", _A), ("req.Header.Set(\"X-Api-Key\", \"{}\")", _A), ("http.header('X-Vault-Token', '{}')", _A),
    # webhooks and addresses
    ("https://discord.com/api/webhooks/" + digits(18) + "/{}", url64(68)), ("https://outlook.office.com/webhook/{}", uuid() + "@" + uuid()), ("https://hooks.slack.com/services/T0" + upper(8) + "/B0" + upper(8) + "/{}", alnum(24)), ("https://open.feishu.cn/open-apis/bot/v2/hook/{}", uuid()),
    ("https://oapi.dingtalk.com/robot/send?access_token={}", hexa(64)), ("https://api.telegram.org/bot" + digits(10) + ":{}/sendMessage", "AA" + url64(33)), ("https://hook.eu1.make.com/{}", lower(32)), ("https://events.pagerduty.com/integration/{}/enqueue", hexa(32)),
    ("https://sentry.io/api/hooks/release/builtin/1/{}/", hexa(64)), ("https://{}@o1.ingest.sentry.io/2", hexa(32)), ("https://maker.ifttt.com/trigger/x/with/key/{}", url64(22)), ("https://hooks.example.com/in?token={}", _A), ("https://chat.example.com/hooks/{}", lower(26)), ("webhook = 'https://ci.example.com/hook/{}'", _A),
    ("mongodb+srv://app:{}@c0.mongodb.net", _P), ("amqp://guest:{}@mq:5672", _W), ("jdbc:mysql://h/db?user=a&password={}", _P), ("Server=h;User Id=a;Pwd={};", _P), ("https://x.blob.core.windows.net/c?sv=2024&sig={}", alnum(43) + "%3D"), ("wss://h/ws?access_token={}", _A), ("https://h/cb#access_token={}&x=1", _A), ("ftp://u:{}@h/f", _W),
    # escapes, and split literals
    ("ghp\\_{}", alnum(36)), ("sk\\-proj\\-{}", alnum(40)), ("'ghp_' + '{}'", alnum(36)), ('"ghp_" "{}"', alnum(36)), ("`ghp_${{'{}'}}`", alnum(36)), ("\"sk-ant-\" + \"api03-{}\"", alnum(60)), ("glpat\\-{}", alnum(20)), ("'xoxb-' . '{}'", digits(12) + "-" + digits(12) + "-" + alnum(24)),
    ("password = 'Kw7-' + '{}'", "pqXz42Lm99"), ("['ghp_', '{}'].join('')", alnum(36)), ("npm\\_{}", alnum(36)), ("github\\_pat\\_{}", alnum(59)),
    # other languages
    ("비밀번호: {}", _P), ("암호: {}", _P), ("비밀번호는 {} 입니다", _P), ("API 키: {}", _A), ("wachtwoord: {}", _P), ("wachtwoord={}", _W), ("Het wachtwoord is {}", _P), ("geheime sleutel: {}", _A),
    ("hasło: {}", _P), ("haslo={}", _W), ("klucz API: {}", _A), ("Hasło: {}", _P), ("şifre: {}", _P), ("sifre={}", _W), ("parola: {}", _P), ("Şifre: {}", _P),
    ("كلمة المرور: {}", _P), ("كلمة السر: {}", _P), ("الرمز السري: {}", _P), ("رمز الوصول: {}", _A), ("mật khẩu: {}", _P), ("Mật khẩu là {}", _P), ("mat_khau={}", _W), ("khóa bí mật: {}", _A),
    ("anahtar: {}", _A), ("비밀 키: {}", _A), ("토큰: {}", _A), ("wachtwoordzin: {}", _P), ("hasło to {}", _P), ("API anahtarı: {}", _A),
    # files and settings
    ("[default]\naws_session_token = {}", alnum(120)), ("//registry.example/:_authToken={}", _A), ("machine h\n  login u\n  password {}", _W), ("spring.datasource.password={}", _W), ("db.pass: {}", _P), ("MYSQL_PWD={}", _W), ("PGPASSWORD={} psql", _W), ("kdbx master: password \"{}\"", _P),
    ("user_pass = {}", _P), ("passwd = \"{}\"", _W), ("SMTP_PASS={}", _W), ("ENCRYPTION_KEY={}", _B), ("JWT_SECRET={}", _W), ("jwt.signing-key={}", _A), ("signingSecret: '{}'", _H), ("clientSecret={}", _A),
    ("STRIPE_KEY={}", _A), ("OPENAI_KEY={}", _A), ("ALGOLIA_ADMIN_KEY={}", hexa(32)), ("accessKeySecret: {}", _A), ("twilio_auth: {}", hexa(32)), ("LICENSE_KEY={}", upper(5) + "-" + upper(5) + "-" + upper(5)), ("app.salt=\"{}\"", _A), ("PRIVATE_KEY=0x{}", hexa(64)),
    ("wallet private key {}", hexa(64)), ("kubeconfig: client-key-data: {}", alnum(80)), ("refresh_token: {}", _B), ("id_token={}", _B), ("bot_token = \"{}\"", _A), ("session_secret: {}", _A),
)  # fmt: skip

_BY_FORM: tuple[tuple[str, str], ...] = (
    ("1Password", "ops_" + "eyJ" + alnum(240)), ("Infisical", "st." + hexa(24) + "." + hexa(32) + "." + hexa(32)), ("Upstash", "AX" + alnum(50) + "="), ("Aiven", "AVNS_" + alnum(19)), ("Aiven token", "aivenv1_" + alnum(72)),
    ("JFrog", "AKCp" + alnum(69)), ("JFrog reference", "cmVmdGtu" + alnum(56)), ("Dropbox", "sl." + "B" + url64(130)), ("Dropbox of late", "sl.u." + url64(130)), ("sk_prod", "sk_prod_" + alnum(32)),
    ("Warp", "wk-1." + hexa(64)), ("Factory", "fk-" + alnum(40)), ("Lambda", "secret_" + lower(32) + "_" + alnum(40)), ("Confluent", "cflt" + alnum(60)), ("Intercom", "dG9rOj" + alnum(54) + "="),
    ("Context7", "ctx7sk-" + uuid()), ("Nostr", "nsec1" + lower(58)), ("Bitcoin xprv", "xprv9" + alnum(106)), ("ElevenLabs", "sk_" + hexa(48)), ("Cohere", "co_" + alnum(40)),
    ("DeepSeek", "sk-" + hexa(32)), ("Mistral named", "MISTRAL_API_KEY=" + alnum(32)), ("Linear webhook", "lin_wh_" + alnum(40)), ("Resend", "re_" + alnum(8) + "_" + alnum(24)), ("Loops", "lps_" + alnum(40)),
    ("WorkOS", "sk_live_" + alnum(48)), ("Clerk", "sk_test_" + alnum(42)), ("LiveKit", "LIVEKIT_API_SECRET=" + alnum(44)), ("Convex", "prod:happy-otter-123|" + alnum(60)), ("Turso", "TURSO_AUTH_TOKEN=" + alnum(60)),
    ("Railway", "RAILWAY_TOKEN=" + uuid()), ("Lemon Squeezy", "LEMONSQUEEZY_API_KEY=" + alnum(80)), ("Unkey", "unkey_" + alnum(24)), ("Tinybird", "p." + "eyJ1" + alnum(80) + "." + alnum(43)), ("Replit", "rpl_" + alnum(40)),
    ("Exa named", "EXA_API_KEY=" + uuid()), ("Firecrawl", "fc-" + hexa(32)), ("Zep", "z_" + alnum(60) + "." + alnum(80)), ("Langfuse", "sk-lf-" + uuid()), ("Ghost", hexa(24) + ":" + hexa(64)),
    ("Sanity", "sk" + alnum(150)), ("Storyblok", "SB_PREVIEW_TOKEN=" + alnum(22) + "tt"), ("Novu", "NOVU_SECRET_KEY=" + hexa(32)), ("Segment", "sgp_" + alnum(64)), ("Vercel AI", "vck_" + alnum(56)),
    ("Netlify", "nfp_" + alnum(36)), ("Auth0 management", "AUTH0_CLIENT_SECRET=" + url64(64)), ("Ed25519 WireGuard", "PrivateKey = " + alnum(43) + "="), ("WIF", "wif: 5" + alnum(50)), ("yprv", "yprvA" + alnum(106)),
)  # fmt: skip


def _secret(text: str) -> str:
    """Return the random part of a token: all behind its name and prefix."""
    return text[-min(len(text) - 4, 32) :]


_ALL = (
    *(Shape(form, form.format(secret, secret), (secret,)) for form, secret in _BY_PLACE),
    *(Shape(name, f"it is {text} here", (_secret(text),)) for name, text in _BY_FORM),
)
LOOKED_AT, HELD_OUT = _ALL[::2], _ALL[1::2]
