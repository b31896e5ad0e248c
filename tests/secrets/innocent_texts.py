"""Texts that redaction must leave alone (rulings A12, N7): they only look like secrets."""

import base64
import hashlib
import random
import struct
import zlib

_DRAW = random.Random(20261123)
_SHA = hashlib.sha256(b"a").hexdigest()
_SHA1 = hashlib.sha1(b"b").hexdigest()
_SHA512 = base64.b64encode(hashlib.sha512(b"c").digest()).decode()
_MD5 = hashlib.md5(b"d").hexdigest()
_UUID = "123e4567-e89b-12d3-a456-426614174000"
_BYTES = _DRAW.randbytes(3000)
_PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + bytes(12) + zlib.compress(_BYTES)
).decode()
_JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF" + _BYTES).decode()
_WOFF = base64.b64encode(b"wOF2" + bytes(40) + _BYTES).decode()
_CERTIFICATE = "MIIDXTCCAkWgAwIBAgIJAJC1" + base64.b64encode(_BYTES[:500]).decode()
_LINES = "\n".join(_CERTIFICATE[at : at + 64] for at in range(0, len(_CERTIFICATE), 64))
_SVG = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><path d="M0 0h24v24H0z"/></svg>'
).decode()
_PROSE = base64.b64encode(b"Nothing to be seen here, only words, and the word password too.").decode()

INNOCENT: tuple[str, ...] = (
    # names of things
    f"git SHA {_SHA1}", f"commit {_SHA1[:7]} renames secret_name to secret_ref", f"sha256:{_SHA}", f"{_SHA}  dist/app.tar.gz", f"md5 {_MD5}",
    f"image: registry.example/app@sha256:{_SHA}", f"FROM python:3.11-slim@sha256:{_SHA}", _UUID, f"request id {_UUID}", f"cache-key-{_MD5}", f"etag: \"{_MD5}\"", f"W/\"{_SHA1}\"",
    f'"integrity": "sha512-{_SHA512}"', f'"resolved": "https://registry.example/react/-/react-18.2.0.tgz", "integrity": "sha512-{_SHA512}"', f"github.com/x/y v1.2.3 h1:{base64.b64encode(hashlib.sha256(b'e').digest()).decode()}",
    f"--hash=sha256:{_SHA}", f'checksum = "{_SHA}"', f'content-hash = "{_SHA}"', f"pkg@npm:1.0.0: checksum: 10/{_SHA}", f"<script src=x.js integrity=\"sha384-{_SHA512[:64]}\" crossorigin>",
    f"index {_SHA1[:7]}..{_SHA1[8:15]} 100644", f"parent {_SHA1}", f"tree {_SHA1}", "refs/heads/service/job-k7m2q9x4w1zc.3-build-api", "job-k7m2q9x4w1zc.12", "session 0190f3b2-7d1c-7c3e-9b7a-2f5e8c1d4a6b was resumed",
    "arn:aws:iam::123456789012:role/deploy", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf", "i-0abcd1234efgh5678", "vpc-0a1b2c3d4e5f67890", "projects/acme/secrets/db-password/versions/3",
    f"traceparent: 00-{_MD5}-{_MD5[:16]}-01", "x-request-id: 8f14e45fceea167a5a36dedd4bea2543", "build 20261122.4", "v1.0.0-rc.1+build.20261122", "pydantic==2.14.3", "node_modules/@babel/core/lib/index.js",
    # pictures, fonts, code that was made small
    f"data:image/png;base64,{_PNG}", f"data:image/jpeg;base64,{_JPEG[:2000]}", f"url(data:font/woff2;base64,{_WOFF[:2000]}) format('woff2')", f"background:url(data:image/svg+xml;base64,{_SVG})", _PROSE, _BYTES.hex(),
    'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 24 24%22%3E%3C/svg%3E', "!function(e,t){\"object\"==typeof exports?module.exports=t():e.token=t()}(this,function(){return{next:function(n){return n.key||n.token}}});",
    "var a=t.key,b=t.token,c=n.password;if(a&&b!==c)return d(a,b)", "e.secret=function(t){return this.tokens[t]||null}", "for(var t=e.keys,n=0;n<t.length;n++)i[t[n]]=1;", "const{token:a,secret:b}=this.state;", "//# sourceMappingURL=app.4f3c2b1a.js.map",
    "a.exports=n.p+\"static/media/logo.6ce24c58023cc2f8fd88fe9d219db6c6.svg\"", "webpackChunk_8f3a2b1c9d", "AAAA" * 40, "AAAAAAAAAAAAAAAAAAAAAA==", "/EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    # placeholders
    "API_KEY=<your-token>", "API_KEY=your-api-key", "TOKEN=***", "TOKEN=$TOKEN", "TOKEN=${TOKEN}", "TOKEN=${TOKEN:-none}", "password=$DB_PASSWORD", "password: ${{ secrets.DB_PASSWORD }}", "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ db_password }}", "password: '{{ vault_db_password }}'", "password = \"{{ .Values.password }}\"", "PASSWORD=changeme", "PASSWORD=change-me", "secret: xxxxxxxx", "token: ********", "api_key: \"YOUR_API_KEY\"", "apiKey: 'your_api_key_here'", "API_KEY=%API_KEY%",
    "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "Authorization: Bearer ${TOKEN}", "Authorization: Bearer {token}", "Authorization: token $GITHUB_TOKEN", "curl -H \"Authorization: Bearer $(cat token)\" https://x.example", "X-Api-Key: $KEY",
    "curl -u \"$USER:$PASS\" https://x.example", "curl -u user:$PASSWORD https://x.example", "mysql -u root -p shop", "mysql -u root -p", "mysql -h db -P 3306 -u me", "docker run -p 8080:80 nginx", "ssh -p 2222 me@host", "mkdir -p build/output", "sshpass -p \"$PASS\" ssh h", "docker login -u me --password-stdin registry.example",
    "postgres://user:$PASSWORD@db/app", "postgres://user:${PASSWORD}@db/app", "postgres://<user>:<password>@db/app", "https://example.com/a/b?c=d#e", "https://user@example.com/repo", "http://localhost:8080/@scope/package", "git@github.com:org/repo.git", "ssh://git@github.com:22/org/repo.git",
    "https://x.example/cb?code=<code>&state=<state>", "https://x.example/search?key=value&sort=name", "https://x.example/?v=2&session=true", "redis://localhost:6379/0", "mongodb://localhost:27017/test", "jdbc:postgresql://localhost:5432/app",
    '"password": null', '"token": ""', '"token": "[redacted]"', "password: [redacted]", "token=[redacted]", "<password></password>", "<password>${env.PASSWORD}</password>", "<password/>", "secret=/run/secrets/db_password", "password_file: /run/secrets/db_password", "PWD=/home/user/project", "SSH_AUTH_SOCK=/tmp/ssh-abc123/agent.42",
    # code and documents about secrets
    "os.environ[\"API_KEY\"]", "api_key=os.environ['OPENAI_API_KEY']", "api_key = os.getenv(\"API_KEY\")", "const token = process.env.GITHUB_TOKEN;", "token = next(tokens)", "token = get_token(request)", "token = self._tokens[0]", "token = request.headers.get('x')", "secret = settings.client_secret",
    "password: str", "password: str | None = None", "password: Optional[str] = None", "def login(user: str, password: str) -> Token:", "login(user=user, password=password)", "token: TokenType = TokenType.ACCESS", "let token: String = read_token()?;", "token := parser.next()", "if token == \"{\":", "password !== confirmPassword", "if (!token) return null;",
    "assert token is not None", "return token ? token.value : undefined", "self.token = token", "this.password = password;", "tokens = tokenizer(text)", "for token in tokens:", "key=lambda item: item.name", "sorted(items, key=len)", "primary_key=True, foreign_key='users.id'", "primary_key=True", "sort_key: created_at_2024", "key: value", "\"key\": \"value\"", "keys = list(mapping)", "React.createElement(Item, {key: item.id})",
    "The token bucket refills 30 times a minute.", "A bearer token is required for every request.", "Bearer authentication with a rotating token", "Basic authentication is not supported.", "Set the Authorization header to your key.", "Authorization: required for all routes", "authorization: none", "The password must have at least 12 characters.", "password: required", "The password is wrong.", "the token is expired", "the token is valid for 30days", "Secret rotation: every 90 days", "the secret is in the vault",
    "max_tokens=4096", "max_tokens: 4096", "max_delegation_token_budget = 100000", "input_tokens: 12345, output_tokens: 678", "token_count=15000", "total_tokens=1234567", "TOKENIZERS_PARALLELISM=false", "tokenizer: gpt2-medium-v1", "token_url=https://auth.example.com/oauth/token", "token_endpoint: https://auth.example.com/token", "token_type: bearer", "token: missing", "password_field_1: visible", "secretary: Bob1234567", "monkey=banana123", "keyboard: qwerty123", "passed=12 failed=0", "pass: 14, fail: 0", "compass=north2south",
    "cookies are enabled; a cookie is set on login", "Cookie: <session>", "Set-Cookie: session=; Max-Age=0", "credentials are read from the keychain", "credentials: include", "credentials: 'same-origin'", "9 passwords were checked: 3 weak, 6 strong", "ran `pytest -k token_rotation` (14 passed)", "tests/contract/test_redaction.py::test_tokens[github]", "src/auth/token_store.py:128", "/home/user/project/secrets/README.md",
    "if type_token == \"integer\":", "_digest_auth = self.build_digest_header(", "basic_auth = case.operation.schema.config.auth_for(operation)",
    "monkeypatch.setenv(\"DESK_TOKEN\", SECRET)", "_HEX_PAT = \"[0-9A-Fa-f]{1,4}\"", "check(\"Authorization\", ParameterLocation.HEADER):",
    "class TokenBucket: capacity = 30", "Token: AuthenticationTokenProvider", "export class SecretsManagerClient extends Client {}", "com.example.security.PasswordEncoderFactoriesConfigurationTest", "thisIsAVeryLongIdentifierThatSomebodyWroteInJava2", "some_very_long_snake_case_identifier_name_for_a_test_v2", "task-implement-rate-limiter-module-0123456789abcdef", "desk-proj-board-and-chair-for-the-office-1", "risk-ant-colony-optimisation-2024-release-notes",
    # keys that are public
    f"-----BEGIN CERTIFICATE-----\n{_LINES}\n-----END CERTIFICATE-----", f"-----BEGIN PUBLIC KEY-----\n{_LINES[:200]}\n-----END PUBLIC KEY-----", f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{_LINES[:200]}\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----", f"-----BEGIN CERTIFICATE REQUEST-----\n{_LINES[:200]}\n-----END CERTIFICATE REQUEST-----",
    "client-certificate-data: " + base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{_LINES}\n-----END CERTIFICATE-----\n".encode()).decode(), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3Yz0kqVb2x8mM3s0Qk5w7Hn9u1d4PzX6cR2tYvB8Lf user@host", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7" + base64.b64encode(_BYTES[:300]).decode() + " me@host",
    "checks the -----BEGIN PRIVATE KEY----- header", "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p", "public_key: ed25519:abcdef", "minisign public key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
    "the prefix sk- and the prefix xoxb-", "sk-learn", "ghp_short", "github_pat_ prefix", "AKIA is the prefix of an access key id", "AKIAlowercase1234567", "eyJ is how a header begins", "hf_transfer", "npm_config_registry", "npm_package_dependencies_left_pad", "re_compile_all_the_patterns_of_this_module_now", "key_error_in_the_handler_of_the_last_request", "pypi-publish-action-with-a-rather-long-name-and-version-1",
    # numbers and the like
    "#a1b2c3", "#FF5733CC", "color: #1e90ff; background: #0b0c10", "+49 30 1234567", "(555) 867-5309", "+1-202-555-0143", "ISBN 978-3-16-148410-0", "DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "4111 1111 1111 1111", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "00:1b:44:11:3a:b7", "2026-11-22T18:30:04.123456Z", "1732300204.123456", "0x7fff5fbff8c0", "3.14159265358979323846264338327950288419716939937510", "rate: 1.5/s, burst: 10, key: value",
    "foo@bar.example and @dataclass", "mailto:user1@example.com", "to:user1@example.com", "image: app:v1.2@sha256:" + _SHA, "npm:react18@18.2.0", "10:30 tomorrow, 12:45@office", "C:\\Users\\me\\tokens\\new_release.txt", "\\\\server\\share\\passwords.txt", "a\\nb\\tc", "%20%2F and 100%25", "a&amp;b &quot;c&quot; &#39;d&#39;", "\x1b[32mgreen\x1b[0m and \x1b[1mbold\x1b[0m", "zero\u200bwidth and soft\u00adhyphen", "ünïcödé — “quotes” … 日本語 🔑 🔒",
    # names in other languages, tables, pipes and codes without a secret
    "| token | description |\n|---|---|\n| abc | the first token |", "user,password\nme,secret\n", "password:\n  required: true", "secrets:\n  - db_password", "token:\n  type: string\n", "password (optional)", "password -> hash", "Passwort vergessen?", "Passwort: erforderlich", "Das Passwort ist falsch.", "mot de passe oublié", "La clave es obligatoria", "clave: valor", "senha incorreta", "пароль не задан", "ключ: значение", "密码错误", "密码：必填", "パスワードを入力してください",
    "seed the database with the words of this list before you run all tests again today", "random.seed(1234567)", "mnemonic: the words that help you remember a thing for longer than one day", "recovery phrase: ask the owner of this wallet to keep it where nobody can read it",
    "echo $TOKEN | docker login --password-stdin", "cat token.txt | docker login -u me --password-stdin", "docker login --password-stdin < token", "echo \"$TOKEN\" | gh auth login --with-token", "$ passwd me", "sudo -S reads the password from standard input", "::add-mask::$TOKEN", "echo \"::add-mask::${{ steps.x.outputs.token }}\"", "kubectl create secret generic db --from-literal=password=$PASSWORD", "gh secret set NPM_TOKEN < token", "vault login -method=oidc", "docker login -p \"$PASSWORD\" r.example", "ssh-keygen -t ed25519 -N '' -f key",
    "password: \"Enter your new password\"", "\"password\": \"Choose a strong one\"", "PASSWORD_HELP=\"at least 8 characters\"", "token = \"not set\"", "secret = \"the one of the vault\"", "CREATE USER me WITH PASSWORD :password", "IDENTIFIED BY '${PASSWORD}'", "`password`: `string`", "| `api_key` | `string` | yes |", "| `token` | `GITHUB_TOKEN` | the variable |", "**Token:** required", "**Password:** at least 12 characters", "getPassword(\"database\")", "setPassword(newPassword)", "password.set(value)", "auth=(\"user\", \"pass\")", "[\"password\", \"confirmPassword\"]", "<input type=\"password\" value=\"\">", "<td>Password</td><td>required</td>", "Set default password for encrypted files.", "SERVER_AUTH = '1.3.6.1.5.5.7.3.1'", "user_pass = '%s:%s'", "authorization = authorization.split()[1]",
    "\\101\\102\\103 are octal", "41 42 43 44 45 46 47 48 49 4a 4b 4c 4d", "0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c", "[104, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100, 33]", "=3D=3D is quoted-printable", "the sum is 1=\n2", "MFRGGZDFMZTWQ2LKNNWG23TP", "\\u{1f511} and \\U0001f511", "ＡＢＣ１２３", "\"first\" + \"second\"",
    "line one\nline two\nline three", "def f():\n    return 1\n\n\nclass A:\n    key = 2\n", "- [x] rotate the tokens\n- [ ] delete the old password", "| name | token |\n|---|---|\n| a | next |", "```\nservice job show job-k7m2q9x4w1zc\n```",
)  # fmt: skip
