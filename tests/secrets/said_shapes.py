"""Secrets as people and programs write them (ruling N7): in other languages, Markdown, commands, further encodings."""

import base64
import quopri
import textwrap
from collections.abc import Callable

from tests.secrets.secret_shapes import BY_FORM, Shape, alnum, hexa

_P, _W = "Hunter2" + "-Zx9Qm", "sword" + "fish"
_S = "correct horse " + "battery staple"
_GITHUB = next(shape.text for shape in BY_FORM if shape.name == "GitHub p")

_CLASSES: dict[str, tuple[tuple[str, str], ...]] = {
    "language": (
        ("Passwort: {}", _P), ("Kennwort: {}", _P), ("Das Passwort lautet {}", _P), ("Zugangsschlüssel: {}", _P), ("geheimnis = \"{}\"", _W), ("API-Schlüssel: {}", _P), ("passwort={}", _W), ("Losungswort: {}", _P), ("Datenbank-Passwort = {}", _P),
        ("Mot de passe : {}", _P), ("mot_de_passe={}", _W), ("Le mot de passe est {}", _P), ("clé secrète : {}", _P), ("cle_api: {}", _P), ("Clé d'API : {}", _P), ("jeton: {}", _P), ("MDP={}", _P), ("motdepasse = '{}'", _W),
        ("contraseña: {}", _P), ("contrasena={}", _W), ("La contraseña es {}", _P), ("clave: {}", _P), ("clave secreta: {}", _P), ("clave_api = \"{}\"", _W), ("CONTRASEÑA={}", _W), ("clave de acceso: {}", _P),
        ("senha: {}", _P), ("SENHA={}", _W), ("A senha é {}", _P), ("chave secreta: {}", _P), ("chave_api={}", _P), ("palavra-passe: {}", _P), ("segredo = '{}'", _W), ("chave de API: {}", _P),
        ("La password è {}", _P), ("chiave segreta: {}", _P), ("parola d'ordine: {}", _P), ("chiave_api = \"{}\"", _P), ("parola chiave: {}", _P), ("segreto={}", _W),
        ("пароль: {}", _P), ("Пароль от базы: {}", _P), ("ПАРОЛЬ={}", _W), ("ключ: {}", _P), ("секретный ключ: {}", _P), ("токен = {}", _P), ("секрет: \"{}\"", _W),
        ("密码：{}", _P), ("密码: {}", _P), ("密码是 {}", _P), ("口令：{}", _P), ("密钥={}", _P), ("密碼：{}", _P), ("令牌: {}", _P), ("数据库密码为{}", _P),
        ("パスワード：{}", _P), ("パスワードは {} です", _P), ("暗証番号: {}", _P), ("秘密鍵: {}", _P), ("トークン：{}", _P),
    ),
    "over two lines": (
        ("password:\n{}", _P), ("Password:\n\n{}", _P), ("Password:\n  {}", _P), ("API key:\n    {}\n", alnum(24)), ("token:\n> {}", _P), ("client_secret:\n- {}", alnum(32)), ("The password is:\n\n    {}\n", _P),
        ("password: >-\n  {}", _P), ("password: |\n  {}\n", _W), ("\"password\":\n  \"{}\"", _W), ("password =\n    \"{}\"", _W), ("Access token:\r\n{}\r\n", alnum(30)), ("Your API key is:\n{}", alnum(30)),
        ("API key:\n```\n{}\n```", alnum(24)), ("**Password:**\n\n```text\n{}\n```", _P), ("Passwort:\n{}", _P), ("PASSWORD=\\\n{}", _P), ("secret:\n\t{}", _P), ("the new password:\n\n> `{}`", _P),
    ),
    "Markdown": (
        ("**Password:** {}", _P), ("**Password**: {}", _P), ("*password:* {}", _P), ("__Password:__ {}", _P), ("**Password:** `{}`", _W), ("- **API key**: `{}`", _P), ("* **Token** — `{}`", alnum(24)), ("_secret_: {}", _P),
        ("**`password`**: {}", _P), ("`password`: `{}`", _W), ("`DB_PASSWORD`: {}", _P), ("| password | {} |", _P), ("| **Password** | `{}` |", _W), ("|password|{}|", _P), ("| API key | {} |", alnum(24)), ("| `SECRET_KEY` | `{}` |", _P),
        ("| user | password |\n|---|---|\n| me | {} |", _P), ("| user | password | role |\n| --- | :---: | ---: |\n| me | `{}` | admin |", _W), ("| name | value |\n|---|---|\n| DB_PASSWORD | {} |", _P),
        ("- password — {}", _P), ("password -> {}", _P), ("password → {}", _P), ("Password – `{}`", _P), ("The password is `{}`.", _P), ("The password is **{}**", _P), ("password: ~~{}~~", _P), ("<b>Password:</b> {}", _P), ("<td>Password</td><td>{}</td>", _P),
        ("<dt>Password</dt>\n<dd>{}</dd>", _P), ("<strong>API key</strong>: <code>{}</code>", _P), ("Password: <code>{}</code>", _W), ("username: me, password: {}", _P), ("(password: {})", _P), ("[password: {}]", _P), ("### Password\n\n{}\n", _P), ("login: me / password: {}", _P),
        ("username/password: me/{}", _P), ("password \"{}\"", _P), ("with password '{}'", _P), ("password ({})", _P),
    ),
    "with spaces": (
        ("PASSWORD=\"{}\"", _S), ("export DB_PASSWORD='{}'", _S), ("passphrase = \"{}\"", _S), ("password: \"{}\"", _S), ("\"password\": \"{}\"", _S), ("--password \"{}\"", _S), ("--passphrase '{}'", _S), ("PASSPHRASE={}", _S.replace(" ", "-")), ("$env:PASSWORD = \"{}\"", _S),
        ("password = '{}'", "Tr0ub4dor " + "& 3 more"), ("ENV DB_PASSWORD=\"{}\"", _S), ("ssh-keygen -t ed25519 -N \"{}\" -f k", _S), ("wpa_passphrase=\"{}\"", _S), ("psk=\"{}\"", _S), ("<password>{}</password>", _S), ("mysql -p\"{}\" db", _S),
    ),
    "of a CI": (
        ("::add-mask::{}", _P), ("echo \"::add-mask::{}\"", _W), ("::add-mask::{}\n", _S), ("::set-output name=token::{}", _P), ("::set-env name=API_KEY::{}", _P), ("echo \"token={}\" >> $GITHUB_OUTPUT", _P), ("##vso[task.setvariable variable=token;issecret=true]{}", _P), ("##vso[task.setsecret]{}", _W),
        ("##teamcity[setParameter name='env.password' value='{}']", _W), ("echo ::save-state name=token::{}", _P), ("buildkite-agent redactor add {}", _P), ("2026-11-22T10:00:00.1Z ::add-mask::{}", _P), ("##[add-mask]{}", _P),
    ),
    "to standard input": (
        ("echo {} | docker login -u me --password-stdin", _W), ("echo \"{}\" | docker login --username me --password-stdin r.example", _P), ("printf '%s' '{}' | docker login --password-stdin", _W), ("echo -n {} | podman login --password-stdin r.example", _P), ("docker login -u me --password-stdin <<< {}", _W),
        ("docker login -u me --password-stdin <<< \"{}\"", _P), ("docker login --password-stdin <<EOF\n{}\nEOF", _P), ("echo {} | gh auth login --with-token", _P), ("gh auth login --with-token <<< '{}'", _P), ("echo {} | gh secret set NPM", _P), ("gh secret set NPM --body {}", _P), ("gh secret set NPM -b\"{}\"", _P),
        ("echo {} | sudo -S apt update", _W), ("sudo -S true <<< \"{}\"", _W), ("echo 'me:{}' | chpasswd", _P), ("echo \"root:{}\" | sudo chpasswd", _W), ("echo {} | passwd --stdin me", _W), ("echo -e '{}\\n{}' | passwd me", _P), ("echo {} | cryptsetup luksOpen /dev/sda x -", _P), ("echo {} | kinit me@REALM", _P),
        ("printf {} | wrangler secret put TOKEN", _P), ("echo {} | vercel env add TOKEN production", _P), ("echo {} | helm registry login -u me --password-stdin r.example", _P), ("echo {} | crane auth login -u me --password-stdin r.example", _P), ("echo {} | base64 | kubectl create secret generic x --from-file=-", _P),
        ("echo '{}' | openssl enc -aes-256-cbc -pass stdin", _P), ("echo {} | gpg --batch --passphrase-fd 0 -d f", _P), ("echo {} | op signin", _P), ("echo {} | ssh-add -", _P), ("$ echo {} | docker login --password-stdin", _P), ("cat <<'EOF' | docker login --password-stdin\n{}\nEOF", _P), ("\"{}\" | docker login --password-stdin", _P), ("Write-Output {} | docker login --password-stdin", _P),
    ),
    "of a command": (
        ("docker login -p {} r.example", _W), ("docker login -u me -p{} r.example", _P), ("kubectl create secret generic db --from-literal=pw={}", _P), ("kubectl create secret generic db --from-literal=password='{}'", _W), ("kubectl create secret docker-registry r --docker-password={}", _W), ("aws configure set aws_secret_access_key {}", alnum(40)),
        ("npm config set //r.example/:_authToken {}", alnum(36)), ("npm config set _auth {}", alnum(36)), ("vault login {}", _P), ("vault kv put secret/db value={}", _P), ("snyk auth {}", hexa(36)), ("heroku config:set DB={}", _P), ("fly secrets set DB={}", _P), ("heroku config:set DB_PASSWORD={}", _W),
        ("openssl enc -aes-256-cbc -k {} -in f", _W), ("openssl enc -pass pass:{} -in f", _W), ("openssl passwd -6 {}", _W), ("net user me {} /add", _W), ("ipmitool -H h -U me -P {} sel", _W), ("mosquitto_pub -u me -P {} -t t", _W), ("snmpwalk -v3 -A {} -X other h", _P), ("sqlplus me/{}@db", _P), ("sqlcmd -S h -U sa -P {}", _P), ("wpa_passphrase home {}", _W),
        ("nmcli dev wifi connect home password {}", _W), ("rclone obscure {}", _W), ("ansible-vault encrypt_string '{}' --name x", _P), ("mysql --password={} db", _W), ("mysqladmin -u root password {}", _W), ("psql \"host=db user=me password={}\"", _W), ("curl -d 'user=me&password={}' https://x.example", _W), ("curl -F password={} https://x.example", _W), ("curl -d '{{\"password\":\"{}\"}}' https://x.example", _W),
        ("curl -H 'X-Token: {}' https://x.example", _P), ("curl --oauth2-bearer {} https://x.example", _P), ("curl --key-pass {} https://x.example", _P), ("curl --pass {} https://x.example", _W), ("http POST x.example password={}", _W), ("CREATE USER me WITH PASSWORD '{}';", _W), ("ALTER ROLE me PASSWORD '{}'", _W), ("CREATE USER me IDENTIFIED BY '{}';", _W), ("SET PASSWORD FOR me = PASSWORD('{}')", _W), ("GRANT ALL ON x.* TO me IDENTIFIED BY \"{}\"", _W), ("CREATE LOGIN me WITH PASSWORD = N'{}'", _W), ("requirepass {}", _W), ("AUTH {}", _P), ("redis-cli --pass {}", _W), ("REDISCLI_AUTH={}", _W), ("masterauth {}", _W),
        ("java -Dpassword={} -jar x", _W), ("java -Djavax.net.ssl.keyStorePassword={} -jar x", _W), ("mvn -Dgpg.passphrase={}", _W), ("gradle -Psigning.password={}", _W), ("SetEnv API_TOKEN {}", _P), ("fastcgi_param DB_PASSWORD {};", _P), ("git config http.extraheader \"AUTHORIZATION: basic {}\"", base64.b64encode(b"x:" + alnum(20).encode()).decode()),
        ("git -c http.extraHeader='Authorization: Bearer {}' fetch", alnum(30)), ("twine upload -u __token__ -p {} dist/*", _P), ("poetry config pypi-token.pypi {}", _P), ("poetry config http-basic.x me {}", _P), ("cargo login {}", _P), ("gem push --key {}", _P), ("pip install --index-url https://me:{}@r.example/simple x", _P), ("dotnet nuget push x --api-key {}", _P), ("dotnet nuget push x -k {}", _P), ("sonar-scanner -Dsonar.login={}", _P), ("sonar-scanner -Dsonar.token={}", _P),
        ("az storage blob list --account-key {}", alnum(86) + "=="), ("mongodump --username me --password {}", _W), ("pg_dump postgresql://me:{}@db/x", _P), ("lftp -u me,{} ftp.example", _P), ("smbclient -U 'me%{}' //h/s", _W), ("mount -t cifs -o username=me,password={} //h/s /m", _W), ("rdesktop -u me -p {} h", _P), ("vncviewer -passwd {} h", _P), ("unzip -P {} x.zip", _W), ("7z a -p{} x.7z f", _P), ("gpg --passphrase {} -c f", _W), ("ssh-keygen -t ed25519 -N {} -f k", _P), ("ssh-keygen -p -P {} -f k", _P), ("RESTIC_PASSWORD={} restic backup", _W), ("BORG_PASSPHRASE='{}' borg create", _S), ("sshpass -p{} ssh h", _P), ("export SSHPASS={}", _W),
    ),
    "of a form": (
        ("Content-Disposition: form-data; name=\"password\"\r\n\r\n{}\r\n--x", _W), ("<input type=\"password\" name=\"x\" value=\"{}\">", _W), ("<input value=\"{}\" type=\"password\">", _W), ("userPassword:: {}", base64.b64encode(b"Hunter2-Zx9Qm").decode()), ("userPassword: {}", _P), ("password: !!binary {}", base64.b64encode(b"Hunter2-Zx9Qm").decode()), ("<user name=\"me\" password=\"{}\"/>", _W),
        ("user,password\nme,{}\n", _P), ("user;password;role\nme;{};admin\n", _P), ("user\tpassword\nme\t{}\n", _P), ("[\"password\", \"{}\"]", _P), ("(\"password\", \"{}\")", _P), (":password \"{}\"", _P), (":password => \"{}\"", _W), ("password := `{}`", _P), ("setPassword(\"{}\")", _P), ("withPassword('{}')", _P), ("login(\"me\", password: \"{}\")", _W), ("new Credentials(\"me\", \"{}\")", _P), ("auth=(\"me\", \"{}\")", _P), ("HTTPBasicAuth(\"me\", \"{}\")", _P),
        ("password.set(\"{}\")", _P), ("psk: {}", _P), ("PSK = \"{}\"", _W), ("pre-shared-key {}", _P), ("enable secret 5 {}", _P), ("username me password 7 {}", _P), ("snmp-server community {} RO", _P), ("neighbor 1.2.3.4 password {}", _P), ("ppp_password \"{}\"", _P), ("auth_pass {}", _P), ("bindpw {}", _P), ("bind_password: {}", _P), ("rootpw {}", _P), ("pw: {}", _P), ("pw={}", _P), ("PW: {}", _P), ("passw: {}", _P), ("pass: {}", _P), ("PASS={}", _W), ("passkey: {}", _P), ("pass phrase: {}", _P), ("secret word: {}", _P), ("api-secret: {}", _P), ("apisecret={}", _P), ("secretkey={}", _P), ("authkey={}", _P), ("auth key: {}", _P), ("access code: {}", _P), ("unlock code: {}", _P), ("2FA backup codes: {}", "ab12-cd34" + "-ef56"), ("recovery code: {}", "ab12c-de34f" + "-gh56i"), ("TOTP secret: {}", "JBSWY3DP" + "EHPK3PXP"), ("otpauth://totp/x?secret={}&issuer=y", "JBSWY3DP" + "EHPK3PXP"),
    ),
}  # fmt: skip


def _as(name: str, text: str) -> Shape:
    return Shape(name, text, (text,))


def _codes() -> list[Shape]:
    """Return a token and an assignment in encodings that hide them."""
    shapes = []
    by_character: dict[str, Callable[[bytes], str]] = {
        "quoted-printable": lambda raw: "".join(f"={byte:02X}" for byte in raw),
        "octal": lambda raw: "".join(f"\\{byte:03o}" for byte in raw),
        "octal with a zero": lambda raw: "".join(f"\\0{byte:03o}" for byte in raw),
        "hex escapes": lambda raw: "".join(f"\\x{byte:02x}" for byte in raw),
        "braces": lambda raw: "".join(f"\\u{{{byte:x}}}" for byte in raw),
        "braces with zeros": lambda raw: "".join(f"\\u{{{byte:06x}}}" for byte in raw),
        "hex in braces": lambda raw: "".join(f"\\x{{{byte:x}}}" for byte in raw),
        "long escapes": lambda raw: "".join(f"\\U{byte:08x}" for byte in raw),
        "percent u": lambda raw: "".join(f"%u{byte:04x}" for byte in raw),
        "numbered entities": lambda raw: "".join(f"&#{byte};" for byte in raw),
        "hex entities": lambda raw: "".join(f"&#x{byte:x};" for byte in raw),
        "UTF-16": lambda raw: "".join(f"{chr(byte)}\0" for byte in raw),
        "full width": lambda raw: "".join(chr(byte + 0xFEE0) for byte in raw),
    }
    whole: dict[str, Callable[[bytes], str]] = {
        "base32": lambda raw: base64.b32encode(raw).decode(),
        "base32 without padding": lambda raw: base64.b32encode(raw).decode().rstrip("="),
        "hex with spaces": lambda raw: raw.hex(" "),
        "hex with colons": lambda raw: raw.hex(":"),
        "hex with 0x": lambda raw: ", ".join(f"0x{byte:02x}" for byte in raw),
        "hex in capitals": lambda raw: raw.hex().upper(),
        "numbers": lambda raw: str(list(raw))[1:-1],
    }
    for code, encode in (by_character | whole).items():
        shapes.append(_as(f"token in {code}", encode(_GITHUB.encode())))
        name, value = encode(b"DB_PASSWORD="), encode(_P.encode())
        if code in by_character:
            shapes.append(Shape(f"assignment in {code}", name + value, (value,)))
        else:
            shapes.append(_as(f"assignment in {code}", encode(f"DB_PASSWORD={_P}".encode())))
    shapes += [
        Shape("assignment, quoted-printable", quopri.encodestring(f"password={_P}".encode(), quotetabs=True).decode(), (_P,)),
        Shape("assignment, soft line break", f"the API password=3D{_P[:9]}=\n{_P[9:]} is\n", (_P[:9],)),
        Shape("token, soft line break", f"it is {_GITHUB[:20]}=\n{_GITHUB[20:]} indeed\n", (_GITHUB[4:20], _GITHUB[20:])),
        Shape("name in octal", f"\\160\\141\\163\\163\\167\\157\\162\\144={_P}", (_P,)),
        Shape("name in braces", f"\\u{{70}}assword={_P}", (_P,)),
        Shape("a letter in octal", _GITHUB.replace("_", "\\137"), (_GITHUB[4:],)),
        Shape("a letter in braces", _GITHUB.replace("_", "\\u{5f}"), (_GITHUB[4:],)),
        Shape("full-width name", "ｐａｓｓｗｏｒｄ＝" + _P, (_P,)),
        Shape("$'' of a shell", "echo $'" + "".join(f"\\x{byte:02x}" for byte in _GITHUB.encode()) + "'", ("".join(f"\\x{byte:02x}" for byte in _GITHUB.encode()),)),
        Shape("put together", f'"{_GITHUB[:20]}" + "{_GITHUB[20:]}"', (_GITHUB[4:20], _GITHUB[20:])),
    ]  # fmt: skip
    return shapes


_WORDS = [
    "abandon", "ability", "able", "about", "above", "absent", "absorb", "abstract", "absurd", "abuse", "access", "accident",
    "account", "accuse", "achieve", "acid", "acoustic", "acquire", "across", "act", "action", "actor", "actress", "actual",
]  # fmt: skip


def _mnemonics() -> list[Shape]:
    twelve, all_ = " ".join(_WORDS[6:18]), " ".join(_WORDS)
    shapes = [
        (f"seed phrase: {twelve}", twelve), (f"Mnemonic: {all_}", all_), (f"mnemonic = \"{twelve}\"", twelve), (f"recovery phrase:\n{twelve}", twelve), (f"My recovery phrase is {all_}.", all_), (f"MNEMONIC='{twelve}'", twelve), (f"SEED=\"{twelve}\"", twelve),
        (f"seed words: {', '.join(_WORDS[6:18])}", ", ".join(_WORDS[6:18])), (f"backup phrase:\n\n{textwrap.fill(all_, 60)}", textwrap.fill(all_, 60)), (f'{{"mnemonic": "{all_}"}}', all_), (f"wallet seed -> {twelve}", twelve), (f"secret recovery phrase: {twelve}", twelve), (f"MNEMONIC={twelve}", twelve),
        ("Seed phrase:\n" + "\n".join(f"{n}. {word}" for n, word in enumerate(_WORDS[6:18], 1)), "\n".join(f"{n}. {word}" for n, word in enumerate(_WORDS[6:18], 1))), (f"hardhat --mnemonic \"{twelve}\"", twelve), (f"**Seed phrase:** `{twelve}`", twelve),
    ]  # fmt: skip
    return [Shape(f"mnemonic: {text[:24]!r}", text, (secret,)) for text, secret in shapes]


SAID: dict[str, tuple[Shape, ...]] = {
    **{
        kind: tuple(Shape(f"{kind}: {form[:48]!r}", form.replace("{}", secret).replace("{{", "{").replace("}}", "}"), (secret,)) for form, secret in forms)
        for kind, forms in _CLASSES.items()
    },
    "in code": tuple(_codes()),
    "mnemonic": tuple(_mnemonics()),
}  # fmt: skip
"""Shapes by class."""
