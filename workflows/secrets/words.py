"""Words that name secrets, in fifteen languages, and words that are never part of a secret. Data only."""

_KINDS = (
    "api app application access private secret encryption encrypt decryption signing signature master deploy "
    "deployment account auth ssh service shared storage subscription function functions admin root client server "
    "license licence session write consumer instrumentation webhook hmac crypto cipher aes host personal "
    "integration bot primary_api secondary_api endpoint_access"
)
"""Words before `key`, as in `api_key` or `signing key`."""

_WHOLE = "mnemonic pat jwt dsn otp pin psk pw bindpw rootpw sshpass pass"
"""Words that name a secret only as whole words."""

_TAIL = (
    r"(?:[_-]?(?:access|key|base|value|data|text|literal|prod|production|dev|test|staging|live|main|b64|base64|hex"
    r"|[0-9]{1,4})){0,3}"
)


def _any_of(*patterns: str) -> str:
    """Join patterns to one alternation. Each pattern has to begin with a letter, to make the search fast."""
    return rf"(?:{'|'.join(patterns)}){_TAIL}"


NAME = _any_of(
    r"passw(?:or)?d|passw(?![a-z])|pass[ _-]?phrase|passcode|passkey|pwd|secret(?: word)?|token"
    r"|credentials?|authorization",
    *(rf"{kind}[ _-]?(?:access[_-]?)?key" for kind in _KINDS.split()),
    *(rf"{kind}[ _-]codes?" for kind in ("access", "recovery", "backup", "unlock", "security")),
    r"connection[_-]?string|shared[_-]?access[_-]?signature|webhook[_-]?url",
    *(rf"{word}(?<![a-z]{word})(?![a-z])" for word in _WHOLE.split()),
    r"key(?<=[a-z0-9]_key)(?=[ \t]*=)|_auth(?![a-z])|_(?:pat|jwt|dsn)(?![a-z])|-(?:pat|jwt|dsn)(?![a-z])",
)
"""Names of secrets in English and in programs."""

HINTS = ("pass", "pwd", "pw", "psk", "secret", "token", "credential", "authorization", "key", "auth", "string",
         "signature", "url", "mnemonic", "pat", "jwt", "dsn", "otp", "pin", "code")  # fmt: skip

_OTHERS: dict[str, str] = {
    "German": r"passw(?:o|ö)rt(?:er)?|kennwort|losungswort|geheimnis|schl(?:ü|ue)ssel|zugangscode",
    "French": r"mots?[ _-]?de[ _-]?passe|motdepasse|mdp(?<!\wmdp)\b|jeton"
    r"|cl(?:é|e)[ _-](?:secr(?:è|e)te|priv(?:é|e)e|(?:d['\u2019]|d_)?(?:api|acc(?:è|e)s))",
    "Spanish": r"contrase(?:ñ|n)a|clave(?<!\wclave)(?:[ _-](?:secreta|privada|api|de (?:acceso|api)))?\b",
    "Portuguese": r"senha(?<!\wsenha)|palavra-passe|segredo|chave[ _-](?:secreta|privada|api|de (?:acesso|api))",
    "Italian": r"parola (?:d['\u2019]ordine|chiave)|segreto|chiave[ _-](?:segreta|privata|api|di accesso)",
    "Russian": r"парол[\u0430-\u044f]{1,3}|секретн[\u0430-\u044f]{2,3} ключ|ключ|токен|секрет",
    "Korean": r"비밀 ?(?:번호|키)|암호|토큰|api[ _-]?키",
    "Dutch": r"wachtwoord(?:zin)?|geheime sleutel",
    "Polish": r"has(?:ł|l)o(?<!\whas.o)(?![a-z])|klucz(?: (?:api|prywatny|dost(?:ę|e)pu))?(?![a-z])",
    "Turkish": r"(?:ş|s)ifre(?<!\w.ifre)(?:si)?(?![a-z])|parola(?![a-z])|anahtar(?:\u0131)?(?![a-z])",
    "Arabic": r"كلمة (?:المرور|السر|مرور)|الرمز السري|رمز الوصول",
    "Vietnamese": r"m(?:ậ|a)t[ _-]kh(?:ẩ|a)u|kh(?:ó|o)a b(?:í|i) m(?:ậ|a)t",
    "Chinese": r"密码|密碼|口令|密钥|密鑰|令牌",
    "Japanese": r"パスワード|暗証番号|秘密鍵|トークン",
}
OTHER_NAME = _any_of(*_OTHERS.values())
OTHER_HINTS = ("wort", "wört", "geheim", "schl", "zugangs", "mot", "mdp", "jeton", "clé", "cle", "contrase", "clave",
               "senha", "palavra", "segre", "chave", "chiave", "parola", "парол", "ключ", "токен", "секрет", "密",
               "口令", "令牌", "비밀", "암호", "토큰", "키", "wacht", "geheim", "hasł", "haslo",
               "klucz", "ifre", "anahtar", "كلمة", "رمز",
               "mật", "mat_khau", "khóa", "パスワード", "暗証", "秘密鍵", "トークン")  # fmt: skip

SHORT_NAMES = ("pin", "otp", "dsn", "pat", "key", "pw", "mdp")
"""Ambiguous names: a value under them is a secret only if it looks random."""

_SENTENCES = (
    "a an the this that these your you my our their it its is are was were be been has have had must should "
    "shall will would can cannot could may not no do does did please if when where which who how why to of for "
    "from with without by at on as into than or and but so password passwords passphrase secret token key keys "
    "credential credentials value values character characters field required invalid wrong expired enter forgot "
    "reset change new old current empty set unset missing default user username"
)
NO_PASSPHRASE = frozenset(_SENTENCES.split())
"""Words that occur in sentences and labels about secrets, and so not in a passphrase."""
