//! The positions in which a text has a secret that no form of token shows.

/// A position of a secret that no key word introduces. The first group that matches is the value; `{V}` stands for a
/// value, quoted or not, `{Q}` for a quoted one.
pub(super) struct PositionRule {
    pub(super) kind: &'static str,
    /// One of these occurs in every text that the pattern matches, in any case.
    pub(super) hints: &'static [&'static str],
    pub(super) pattern: &'static str,
    /// Whether the value must have digits or signs, because ordinary words occur in this position too.
    pub(super) must_be_strong: bool,
}

const fn at(hints: &'static [&'static str], pattern: &'static str) -> PositionRule {
    PositionRule {
        kind: "password",
        hints,
        pattern,
        must_be_strong: false,
    }
}

const fn strong(
    kind: &'static str,
    hints: &'static [&'static str],
    pattern: &'static str,
) -> PositionRule {
    PositionRule {
        kind,
        hints,
        pattern,
        must_be_strong: true,
    }
}

pub(super) const POSITIONS: &[PositionRule] = &[
    // Command lines.
    at(&["sshpass"], r#"\bsshpass\s+(?:-[a-oq-z]\S*\s+)*-p\s*{V}"#),
    at(
        &["mysql", "mariadb", "xtrabackup", "mydumper"],
        r#"\b(?:mysql\w*|mariadb[\w-]*|xtrabackup|mydumper)\b(?:[^\n|;&]*?\s)-p{V}"#,
    ),
    at(
        &["login"],
        r#"\b(?:docker|podman|nerdctl|buildah|skopeo|oras|helm|az|oc|crane|regctl|cf|ibmcloud|argocd|harbor|registry)\b[^\n|;&]*\blogin\b[^\n|;&]*?\s-p[ =]+{V}"#,
    ),
    at(
        &[
            "mongo",
            "cqlsh",
            "evil-winrm",
            "crackmapexec",
            "netexec",
            "nxc",
            "influx",
            "snowsql",
            "arangosh",
            "cbq",
            "couchbase",
            "mosquitto",
            "kinit",
            "smbmap",
            "clickhouse",
        ],
        r#"\b(?:mongo\w*|cqlsh|evil-winrm|crackmapexec|netexec|nxc|influx|snowsql|arangosh|cbq|couchbase-cli|smbmap|clickhouse-client)\b[^\n|;&]*?\s-p[ =]+{V}"#,
    ),
    at(
        &[
            "sqlcmd",
            "bcp",
            "zip",
            "mosquitto",
            "ipmitool",
            "osql",
            "isql",
        ],
        r#"\b(?:sqlcmd|bcp|osql|isql|zip|unzip|mosquitto_(?:pub|sub)|ipmitool)\b[^\n|;&]*?\s-P\s*{V}"#,
    ),
    at(
        &["7z", "rar"],
        r#"\b(?:7z[arz]?|rar|unrar)\b[^\n|;&]*?\s-h?p{V}"#,
    ),
    at(
        &["redis-cli", "keydb-cli", "valkey-cli"],
        r#"\b(?:redis|keydb|valkey)-cli\b[^\n|;]*?\s-a\s+{V}"#,
    ),
    at(
        &["ldap"],
        r#"\bldap(?:search|add|modify|delete|passwd|whoami|compare|modrdn)\b[^\n|;&]*?\s-w\s*{V}"#,
    ),
    at(
        &["htpasswd"],
        r#"\bhtpasswd\s+-\w*b\w*\s+(?:-\S+\s+)*(?:(?:\./|/|\.\w|\w+[./])\S+\s+)?[^\s"'-]\S*\s+{V}"#,
    ),
    at(
        &["smbclient", "rpcclient", "smbget", "winexe", "net "],
        r#"\s(?:-U|--user)[ =]*["']?[^\s%"']+%([^\s"']+)"#,
    ),
    at(
        &["curl", "wget", "http", "xh "],
        r#"\b(?:curl|wget|https?|xh|aria2c)\b[^\n]*?\s(?:-u|--user|-a|--auth|--proxy-user|-U)[ =]*(?:"[^\s:"']{1,64}:([^"\n]+)"|'[^\s:"']{1,64}:([^'\n]+)'|[^\s:"']{1,64}:([^\s"']+))"#,
    ),
    at(
        &["echo", "printf"],
        r#"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:["']?%s\\?n?["']?\s+)?{V}\s*\|\s*(?:sudo\s+(?:-\w+\s+)*-\w*S\b|[^\n|]*(?:--password-stdin|--with-token|--passphrase-fd|--stdin|-pass stdin|cryptsetup|kinit|\bpasswd\b|vault login))"#,
    ),
    at(
        &["chpasswd"],
        r#"[\w.$-]+:([^\s"'|]+)["']?\s*(?:\|\s*(?:sudo\s+)?chpasswd|$)"#,
    ),
    at(
        &["<<<"],
        r#"(?:passwd|sudo\s+-S|--password-stdin|--with-token|kinit|cryptsetup|secret\s+create|psql\b[^\n]*\s-W)[^\n]*<<<\s*{V}"#,
    ),
    at(
        &["NEO4J_AUTH"],
        r#"\bNEO4J_AUTH["']?\s*[=:]\s*["']?[\w.-]+/([^\s"']+)"#,
    ),
    at(&["addauth"], r#"\baddauth\s+digest\s+[^\s:]+:([^\s"']+)"#),
    at(
        &["hydra", "medusa", "ncrack", "patator"],
        r#"\b(?:hydra|medusa|ncrack|patator)\b[^\n|;&]*?\s-p\s+{V}"#,
    ),
    at(
        &["impacket", "secretsdump", "wmiexec", "smbexec", "psexec"],
        r#"\b(?:impacket-\w+|(?:secretsdump|wmiexec|smbexec|atexec|psexec)\.py)\b[^\n]*?\s["']?(?:[\w.-]+/)?[\w.$-]+:([^\s@"']+)@"#,
    ),
    strong(
        "token",
        &["token", "secret", "passw", "credential"],
        r#"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:["']?%s\\?n?["']?\s+)?["']?([^\s"'|;<>`]{8,})["']?\s*>+\s*[^\s|;&]*(?:token|secret|passw|credential)"#,
    ),
    at(&["lftp"], r#"\blftp\b[^\n]*?\s-u\s*["']?[^\s,"']+,{V}"#),
    at(
        &["mc alias", "mc config"],
        r#"\bmc\s+(?:alias\s+set|config\s+host\s+add)\s+\S+\s+\S+\s+\S+\s+{V}"#,
    ),
    at(
        &["config set"],
        r#"\bconfig\s+set\s+(?:--secret\s+[^\s-]\S*\s+{V}|[^\s-]\S*\s+{V}\s+--secret\b)"#,
    ),
    at(&["http-basic"], r#"\bhttp-basic\.\S+\s+\S+\s+{V}"#),
    at(
        &["uci set"],
        r#"\buci\s+set\s+\S*\.(?:key|psk|sae_password|password)=["']?([^\s"']+)"#,
    ),
    at(
        &["radtest"],
        r#"\bradtest\s+(?:-\S+\s+\S+\s+)*[^\s-]\S*\s+{V}"#,
    ),
    at(
        &["secret set"],
        r#"\bsecrets?\s+set\s+\S+[^\n]*?\s(?:--body|-b)[ =]+{V}"#,
    ),
    at(
        &["sonar."],
        r#"sonar\.(?:login|token|password)=["']?([^\s"']+)"#,
    ),
    strong(
        "token",
        &["cargo login"],
        r"\bcargo\s+login\s+(?:--\S+\s+)*([^\s-]\S{15,})",
    ),
    strong("token", &["authtoken"], r#"\b(?:add-)?authtoken\s+{V}"#),
    strong(
        "token",
        &[
            "cloudflared",
            "doctl",
            "flyctl",
            "codecov",
            "netlify",
            "railway",
            "wrangler",
            "hcloud",
        ],
        r#"\b(?:cloudflared|doctl|flyctl|codecov|netlify|railway|wrangler|hcloud)\b[^\n|;&]*?\s(?:-t|--auth|--token|token|install)[ =]+([A-Za-z0-9_.=-]{16,})"#,
    ),
    at(
        &["openssl"],
        r#"\bopenssl\b[^\n]*?\s(?:-pass(?:in|out)?\s+["']?pass:|-k\s+|-K\s+){V}"#,
    ),
    at(
        &["pass:"],
        r#"\s-(?:pass|passin|passout|password)\s+["']?pass:{V}"#,
    ),
    at(
        &["wpa_passphrase"],
        r#"\bwpa_passphrase\s+(?:"[^"\n]*"|'[^'\n]*'|\S+)\s+{V}"#,
    ),
    // After `mysql -u root -p ` comes a database.
    at(
        &["-p"],
        r#"\b(?:mysql\w*|mariadb[\w-]*)\b[^\n|;&]*|\s(?:-u|-U|--user(?:name)?)[ =]\S+\s+(?:-\S+\s+)?-p[ =]+{V}"#,
    ),
    at(
        &["/p:", "/pass", "/rp:", "/rp ", "-p "],
        r#"(?i)\b(?:\w*freerdp\d?|rdesktop|mstsc|cmdkey|runas|psexec\d*|wmic|winrs|schtasks|net)\b[^\n]*?\s(?:/(?:p|pass|password|rp):|(?:-p|/rp)\s+){V}"#,
    ),
    at(
        &["passwd"],
        r#"\b(?:echo|printf)\s+(?:-\w+\s+)*["']([^"'\n]+)\s+[^"'|]+["']\s*\|\s*(?:sudo\s+)?(?:smb)?passwd"#,
    ),
    at(
        &["base64", "btoa", "b64encode"],
        r#"(?i)(?:(?:btoa|b64encode|base64_encode|encodeBase64\w*|toBase64)\s*\(\s*(?:b|Buffer\.from\()?["'][\w.@-]+:([^"'\n]{3,})["']|\becho\s+(?:-\w+\s+)*["']?[\w.@-]+:([^\s"'|]+)["']?\s*\|\s*base64)"#,
    ),
    at(
        &[
            "kv put",
            "etcdctl",
            "put-secret",
            "secrets set",
            "secret set",
        ],
        r#"(?i)\b(?:kv\s+put|etcdctl\s+put|put-secret\S*|secrets?\s+set)\s+(?:-\S+\s+)*["']?[\w./-]*(?:pass|password|passwd|secret|token|key)["']?\s+(?:--\S+[ =])?{V}"#,
    ),
    at(
        &["--value", "--secret-string"],
        r#"(?i)(?:pass|password|passwd|secret|token|key)["']?\s+(?:--?\S+\s+[^\s-]\S*\s+)*(?:--value|--secret-string)[ =]+{V}"#,
    ),
    at(
        &["cred"],
        r#"(?i)\bcred(?:s|entials?)?\b(?:\s+\w+){0,3}\s*(?:[:=]|are|is)\s*["'`(]?[\w.@+-]{2,40}\s?[:/]\s?["'`]?([^\s"'`,;/()\[\]{}]{4,64})"#,
    ),
    at(
        &["jwt.sign", "jwt.verify", "jwt.encode", "jwt.decode"],
        r#"\bjwt\.(?:sign|verify|encode|decode)\([^()\n]*?,\s*{Q}"#,
    ),
    at(
        &["hmac"],
        r#"(?i)\b(?:hmac\.new\(\s*b?|createHmac\(\s*["'][\w-]+["']\s*,\s*){Q}"#,
    ),
    at(
        &["Sequelize"],
        r#"\bnew\s+Sequelize\(\s*["'][^"'\n]*["']\s*,\s*["'][^"'\n]*["']\s*,\s*{Q}"#,
    ),
    at(
        &["passphrase for"],
        r#"(?i)\bpassphrase\s+for\s+(?:key\s+)?["']?[^\s"':]+["']?:[ \t]*([^\s"']+)"#,
    ),
    at(
        &["pin"],
        r#"(?i)\bpin["']?(?:\s+(?:code|is))*\s*(?:[:=]|\sis\s)\s*["']?([0-9]{4,8})\b"#,
    ),
    at(&["ssh-keygen"], r#"\bssh-keygen\b[^\n]*?\s-[NP]\s*{V}"#),
    at(
        &["type=\"password\"", "type='password'"],
        r#"(?i)<input\b[^<>]*\btype=["']password["'][^<>]*\bvalue=["']([^"'\n]+)["']"#,
    ),
    at(&[".auth("], r#"\.auth\(\s*{Q}\s*\)"#),
    at(&["nmcli"], r#"\bnmcli\b[^\n]*\bpassword\s+{V}"#),
    at(
        &["net user", "net  user"],
        r#"(?i)\bnet\s+user\s+\S+\s+([^\s/*]\S*)"#,
    ),
    at(
        &["net use"],
        r#"(?i)\bnet\s+use\s+(?:\S:\s+)?\\\\\S+\s+(?:/user:\S+\s+)?([^\s/]\S*)"#,
    ),
    at(&["snmp"], r#"\bsnmp\w+\b[^\n]*?\s-(?:c|A|X)\s+{V}"#),
    at(
        &["add_user", "change_password", "authenticate_user"],
        r#"\b(?:add_user|change_password|authenticate_user)\s+["']?[\w.@-]+["']?\s+{V}"#,
    ),
    at(
        &["configure set"],
        r#"\bconfigure\s+set\s+\S*(?:secret|token|key)\S*\s+{V}"#,
    ),
    at(
        &["config set", "config --global", "config -g"],
        r#"\bconfig\s+(?:set\s+|--global\s+|-g\s+)+\S*(?:_auth\w*|password|token|secret|api-?key|apikey)\s+["']?([^\s"']{4,})"#,
    ),
    at(&["rclone", "obscure"], r#"\brclone\s+obscure\s+{V}"#),
    at(
        &["vault login", "op signin", "bw login", "bw unlock"],
        r#"\b(?:vault\s+login|bw\s+unlock|bw\s+login\s+\S+)\s+(?:token=)?([^\s"'-]\S{5,})"#,
    ),
    // SQL and database consoles.
    at(
        &["identified"],
        r#"(?i)\bidentified\s+(?:with\s+["'`]?\w+["'`]?\s+)?(?:by|as)\s+(?:password\s+)?{Q}"#,
    ),
    at(
        &["identified"],
        r#"\bIDENTIFIED\s+(?:WITH\s+\S+\s+)?(?:BY|AS)\s+(?:PASSWORD\s+)?{V}"#,
    ),
    strong(
        "password",
        &["AUTH"],
        r#"(?m)(?:^|>|\+|["'`])[ \t]*(?-i:AUTH|auth)[ \t]+(?:[\w-]+[ \t]+)?["']?([^\s"'`]{4,})["'`]?[ \t]*(?:$|["'`])"#,
    ),
    at(
        &["requirepass", "masterauth", "sentinel auth-pass"],
        r#"(?i)\b(?:requirepass|masterauth|auth-pass\s+\S+)\s+{V}"#,
    ),
    at(
        &["createuser", "db.auth", "updateuser", "db.create"],
        r#"(?i)\b(?:db\.auth)\s*\(\s*["'][^"'\n]+["']\s*,\s*{Q}"#,
    ),
    // Of FTP, POP3 and IRC; runners of tests print `PASS src/a.test.ts`.
    at(
        &["PASS "],
        r#"(?m)(?:\bUSER \S+\s*\n(?:[^\n]*\n){0,3}?[^\n]*?|^[^\n]{0,40}[>\]]\s*)(?-i:PASS) ([^\s"']{3,})[ \t]*$"#,
    ),
    at(&["pragma"], r#"(?i)\bpragma\s+(?:re)?key\s*=\s*{Q}"#),
    at(
        &["sp_addlogin", "sp_password"],
        r#"(?i)\bsp_(?:addlogin|password)\s+N?["'][^"'\n]*["']\s*,\s*N?{Q}"#,
    ),
    at(
        &["pass phrase"],
        r#"(?i)\bpass\s+phrase(?:\s+for\s+\S+)?\s*[:=]\s*{V}"#,
    ),
    at(
        &["unseal key", "recovery key"],
        r"(?i)\b(?:unseal|recovery)\s+key(?:\s+\d+)?\s*:\s*(\S{20,})",
    ),
    strong(
        "secret",
        &["secretid", "secret_id"],
        r#"(?i)\bsecret_?id["']?\s*[:=]\s*["']?([A-Za-z0-9-]{24,})"#,
    ),
    strong(
        "secret",
        &["api key", "api-key", "apikey", "api-schl", "api 密"],
        r#"(?i)\bapi[ -]?(?:key|schlüssel|密钥|キー)\s*(?:是|为|：|:|=|ist|lautet:?)\s*["'`]?([A-Za-z0-9_.~+/=-]{16,})"#,
    ),
    at(
        &["code"],
        r#"(?i)\b(?:recovery|backup|scratch)\s+codes?\b[^\n:]{0,40}:((?:[\s,;*`"'-]*[0-9a-z]{4,6}[ -]?[0-9a-z]{4,6}\b){2,})"#,
    ),
    // Twelve words or more, as a wallet gives them.
    at(
        &["phrase", "mnemonic", "words"],
        r#"(?i)\b(?:(?:seed|recovery|secret|wallet|backup)\s+phrase|mnemonic|(?:twelve|12|twenty-four|24)\s+words)\b[^\n:="]{0,24}?(?:\s*[:=]\s*|\s+(?:is|are|was)\s+)["'`]?((?:[a-z]{3,8}[ ,]+){11,23}[a-z]{3,8})\b"#,
    ),
    // Codes that are valid for minutes.
    at(
        &["code", "otp"],
        r#"(?i)\b(?:(?:verification|one[ -]time|security|login|sms|2fa|authentication|confirmation)\s+(?:pass)?code|otp)\b[^\n.,;:]{0,30}?(?:\s(?:is|was)\s+|:\s*)["'`]?([0-9]{4,8})\b"#,
    ),
    at(
        &["code", "pin"],
        r#"(?i)\b(?:door|gate|alarm|entry|unlock|recovery|backup|safe)\s+(?:code|pin)\b[^\n.,;:]{0,20}?(?:\s(?:is|was)\s+|:\s*|\s+)["'`]?([A-Za-z-]{0,8}[0-9][0-9A-Za-z-]{3,20})\b"#,
    ),
    // What a script of `expect` sends when it is asked for a password.
    at(
        &["assword", "assphrase"],
        r#"(?i)ass(?:word|phrase)[^\n]{0,40}\n?[^\n]{0,40}?\bsend\s+(?:--\s+)?\{?["']([^"'\n]{3,60})["'\n]"#,
    ),
    at(
        &["验证码", "驗證碼"],
        r"(?:验证码|驗證碼)[ \t]*(?:是|为|為|：|:)?[ \t]*([0-9]{4,8})(?:[^0-9.]|$)",
    ),
    // Personal numbers in China: identity cards, mobile phones.
    PositionRule {
        kind: "id-number",
        hints: &["身份证", "身分證", "id card"],
        pattern: r"(?i)(?:身份证|身分證|id card)[^0-9\n]{0,24}([1-9][0-9]{5}(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]{4}[0-9x])\b",
        must_be_strong: false,
    },
    PositionRule {
        kind: "phone-number",
        hints: &["手机", "手機", "电话", "電話", "联系方式", "微信"],
        pattern: r"(?:手机|手機|电话|電話|联系方式|微信)[^0-9\n]{0,24}(1[3-9][0-9]{9})(?:[^0-9]|$)",
        must_be_strong: false,
    },
    at(&["wifi:"], r"\bWIFI:[^\n]{0,120}?\bP:([^;\n]+);"),
    strong(
        "password",
        &["wifi", "wlan", "wi-fi", "ssid", "network"],
        r#"(?i)\b(?:wifi|wi-fi|wlan|ssid|network)\b[^\n.]{0,40}?\s(?:with|using|by|key|psk)\s+(?:the\s+key\s+|the\s+password\s+)?["'`]?([^\s"'`<>,;]{6,64})"#,
    ),
    // The value before the word: `X as the password`, `X is the root password.`, `guest / X (password)`.
    strong(
        "password",
        &["pass", "pw"],
        r#"(?im)(?:^|[\s/:,"'`])([^\s"'`/,;:()<>]{5,64})["'`]?[ \t]*(?:\((?:the )?(?:\w+ )?(?:password|passphrase|pwd?)\)|\s(?:as|for|is)\s+(?:(?:the|my|our|your|its)\s+)?(?:\w+\s+)?(?:password|passphrase|passcode)(?:[ \t]*[.,;!)]|[ \t]*$|\s+(?:on|for|of|to|in|at|there|now)\b))"#,
    ),
    // `its password, X, is`.
    strong(
        "password",
        &["password,", "passphrase,"],
        r#"(?i)\b(?:its|the|my|our|your)\s+(?:password|passphrase),[ \t]+["'`]?([^\s"'`,;()<>]{5,64})["'`]?[,.]"#,
    ),
    strong(
        "password",
        &["password used", "password was", "password had"],
        r#"(?i)\bpassword\s+(?:used\s+to\s+be|was|had\s+been)\s+["'`]?([^\s"'`<>,;]{4,64})"#,
    ),
    strong(
        "secret",
        &[
            "key you need",
            "token you need",
            "key to use",
            "token to use",
        ],
        r#"(?i)\b(?:api\s+)?(?:key|token|secret)\s+(?:you\s+need|to\s+use|we\s+use|for\s+\w+)\s+is\s+["'`]?([A-Za-z0-9_.~+/=-]{16,})"#,
    ),
    strong(
        "token",
        &["token", "api key"],
        r"(?i)\b(?:token|api key)\s+(?:(?:is|was|has been)\s+)?(?:created|generated|issued)(?:\s+successfully)?[:.]\s+([A-Za-z0-9_.~+/=-]{24,})",
    ),
    strong(
        "password",
        &[" pass "],
        r"(?i)\b(?:login|user(?:name)?|account)[ \t:]+[^\s,]+,?\s+pass\s+([^\s,;]{6,64})",
    ),
    // A field of a form that is sent in parts.
    at(
        &["form-data"],
        r#"(?i)form-data;[ \t]*name="[^"\n]*(?:pass|pwd|secret|token)[^"\n]*"\s*?\n\r?\n([^\r\n]{3,200})"#,
    ),
    // `REDISCLI_AUTH=X` of the environment.
    strong(
        "password",
        &["_auth="],
        r#"\b(?-i:[A-Z][A-Z0-9_]*_AUTH)=["']?([^\s"'`;|&/$]{8,})"#,
    ),
    // Cookies as a browser keeps them: in JSON, and in the columns that curl reads.
    strong(
        "cookie",
        &["httpOnly"],
        r#"\{[^{}]*?"value"\s*:\s*"([^"\n]{16,})"[^{}]*"httpOnly""#,
    ),
    strong(
        "cookie",
        &["\ttrue\t", "\tfalse\t"],
        r"(?m)^[^\t\n]+\t(?:TRUE|FALSE)\t/[^\t\n]*\t(?:TRUE|FALSE)\t[0-9]+\t[^\t\n]+\t([^\s]{12,})",
    ),
    // Files with fixed columns.
    at(
        &[":"],
        r"(?m)^[ \t]*(?:[A-Za-z0-9_.*-]+|\[[0-9a-f:]+\]):(?:[0-9]{2,5}|\*):[A-Za-z0-9_*$-]+:[A-Za-z0-9_*.@-]+:(\S+)[ \t]*$",
    ),
    at(
        &["login", "user", "account", "ssid"],
        r#"(?i)\b(?:login|user(?:name)?|account|ssid)[ \t]+\S+\s+(?:privilege\s+\d+\s+)?(?:password|passwd|secret)\s+(?:[0-9]\s+)?["']?([^\s"']+)"#,
    ),
    strong(
        "token",
        &["token"],
        r"(?i)\btoken\b[^\n;|&]{0,12}?[ =]([a-z0-9]{6}\.[a-z0-9]{16})\b",
    ),
    at(
        &["bindpw", "rootpw"],
        r#"(?m)^[ \t]*(?:bindpw|rootpw)[ \t]+{V}"#,
    ),
    at(&["]:587", "]:465", "]:25"], r"\]:\d+[ \t]+[^\s:]+:(\S+)"),
    at(
        &["register =>", "register=>"],
        r"\bregister\s*=>\s*[^\s:@/]+:([^\s:@/]+)",
    ),
    at(&["{noop}"], r#"\{noop\}([^\s"'<>]+)"#),
    at(
        &["enable secret", "enable password"],
        r"(?i)\benable\s+(?:secret|password)\s+(?:[0-9]\s+)?(\S+)",
    ),
    at(
        &["community"],
        r"(?i)\b(?:snmp-server\s+community|rocommunity6?|rwcommunity6?|com2sec\s+\S+\s+\S+)\s+(\S+)",
    ),
    at(
        &[
            "$apr1$", "$1$", "$2", "$5$", "$6$", "$y$", "{SHA}", "{SSHA}",
        ],
        r"(?mi)^[A-Za-z0-9_.@-]+:(\$(?:apr1|1|2[abxy]?|5|6|y|7|gy)\$[^\s:]{8,}|\{S{1,2}HA(?:256|512)?\}[A-Za-z0-9+/=]{20,})",
    ),
    // What is stored in place of a password, which can be guessed from it.
    strong(
        "password-hash",
        &["$2", "$5$", "$6$", "$argon2"],
        r#"(?:^|[\s"'`=:,(|])(\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|[56]\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|argon2(?:id|i|d)\$v=[0-9]+\$[a-z0-9,=]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]{20,}))"#,
    ),
    strong(
        "password-hash",
        &["pbkdf2", "scrypt:"],
        r"\b((?:pbkdf2[_:]sha[0-9]+[$:][0-9]+|scrypt:[0-9]+:[0-9]+:[0-9]+)[$:][A-Za-z0-9./+]+[$:][A-Za-z0-9./+=]{20,})",
    ),
    at(
        &["_auth"],
        r#"\b_auth\s*=\s*["']?([A-Za-z0-9+/_-]{8,}={0,2})"#,
    ),
    at(
        &["\"auth\"", "identitytoken"],
        r#""(?:auth|identitytoken)"\s*:\s*"([A-Za-z0-9+/_.=-]{8,})""#,
    ),
    at(
        &["Private-Lines"],
        r"(?i)Private-Lines:\s*\d+\s+((?:[A-Za-z0-9+/=]{20,}\s*)+)",
    ),
    at(
        &["userPassword", "unicodePwd"],
        r"(?i)\b(?:userPassword|unicodePwd)::?\s+(\S+)",
    ),
    // URLs and addresses.
    at(
        &["://"],
        r#"\b[A-Za-z][A-Za-z0-9+.-]{1,24}://[^\s/:@"'<>`]*:([^\s/"'<>`]+)@[\w.\[$%{-]"#,
    ),
    at(
        &["://"],
        r#"\b(?:https?|sftp|ftps?|postgres(?:ql)?|redis|mysql|amqps?|mongodb(?:\+srv)?)://[^\s/:@"'<>`]*:([^\s"'<>`@]+)@[\w.-]+(?::\d+)?(?:/|\s|["'`]|$)"#,
    ),
    strong(
        "token",
        &["://"],
        r"\bhttps?://([A-Za-z0-9_.~%-]{14,})(?::(?:x-oauth-basic|x-auth-token|x)?)?@",
    ),
    at(
        &["tcp(", "unix(", "@("],
        r#"[\w.-]+:([^\s:@/"'()`]+)@(?:tcp|unix|udp)?\("#,
    ),
    at(
        &["sqlplus", "jdbc:oracle", "expdp", "impdp", "rman"],
        r#"\b(?:sqlplus|expdp|impdp|exp|imp|rman\s+target|jdbc:oracle:\w+:)\s*(?:-\w+\s+)*["']?[\w$#]+/["']?([^\s@"'/]+)["']?@"#,
    ),
    strong(
        "password",
        &["@"],
        r#"(?:^|[\s"'=,])(?:[A-Za-z0-9_.-]{2,32}):([^\s:@/"'`,]{6,})@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d+)?"#,
    ),
    strong(
        "signature",
        &[
            "sig=",
            "signature",
            "&key=",
            "?key=",
            "hmac",
            "code=",
            "security-token",
        ],
        r#"(?i)[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|x-oss-signature|q-signature|hmac|key|code|auth)=([A-Za-z0-9%._~+/=-]{12,})"#,
    ),
    strong(
        "code",
        &["code="],
        r"\bcode=([A-Za-z0-9%._~+/-]{16,})&(?:redirect_uri|grant_type|client_id|state)=",
    ),
    strong(
        "webhook",
        &["://hooks."],
        r"https?://hooks\.[\w.-]+/\S*?/([A-Za-z0-9_-]{20,})",
    ),
    at(&["@/"], r#"["'`=][\w.-]{1,32}:([^\s:@/"'`]{3,})@/[\w?]"#),
    strong(
        "signature",
        &["signature="],
        r#"(?i)\bsignature=["']?([A-Za-z0-9%+/=_-]{20,})"#,
    ),
    // Headers and code.
    at(
        &["authorization"],
        r#"(?i)\bauthorization["']?\s*(?:[:=,]|=>)\s*["'`]?(?:basic|bearer|token|apikey|api-key|key|negotiate|ntlm|bot|splunk|oauth|geniekey|snowflake|zoho-oauthtoken|deepl-auth-key|ssws|sso-key|discogs|client-id|hmac|pve\w*=|kagi|tok)[ :]\s*(?:token=|key=)?["']?([A-Za-z0-9_.~+/:!@#%^*=-]{6,})"#,
    ),
    strong(
        "secret",
        &["authorization"],
        r#"(?i)\bauthorization["']?\s*(?:[:=,]|=>)\s*["'`]?([A-Za-z0-9_.~+/:=-]{12,})["'`\s]"#,
    ),
    strong(
        "token",
        &["bearer", "Basic "],
        r#"(?i)\b(?:bearer|basic)\s+["']?([A-Za-z0-9_.~+/=-]{12,})"#,
    ),
    at(
        &["ConvertTo-SecureString"],
        r"(?i)ConvertTo-SecureString\s+(?:-String\s+)?{Q}",
    ),
    at(
        &[
            "Credential",
            "Authentication",
            "BasicAuth",
            "basic_auth",
            "login",
            "auth=",
            "auth =",
            "HTTPDigestAuth",
            "WiFi.begin",
        ],
        r#"(?i)(?:WiFi\.begin|NetworkCredential|PasswordAuthentication|PSCredential|HTTP(?:Basic|Digest)Auth|BasicAuth(?:entication)?|basic_auth|SetBasicAuth|UsernamePasswordCredentials?|\.login|\bauth\s*=\s*)\s*\(\s*["'][^"'\n]*["']\s*,\s*(?:Some\()?{Q}\s*[,).]"#,
    ),
    at(
        &[
            "make_password",
            "check_password",
            "hash_password",
            "password_hash",
            "password_verify",
            "hashpw",
            "bcrypt",
            "argon2",
        ],
        r#"(?i)\b(?:make_password|check_password|verify_password|hash_password|generate_password_hash|password_hash|password_verify|hashpw|(?:bcrypt|argon2)\w*\.(?:hash|compare|verify)(?:Sync)?)\s*\(\s*b?{Q}"#,
    ),
    at(
        &["create_user", "create_superuser"],
        r#"\bcreate_(?:super)?user\s*\(\s*["'][^"'\n]*["']\s*,\s*["'][^"'\n]*["']\s*,\s*{Q}"#,
    ),
    at(
        &["Credentials("],
        r#"\bCredentials\(\s*"[^"\n]*"\s*,\s*"[^"\n]*"\s*,\s*"[^"\n]*"\s*,\s*{Q}"#,
    ),
    // What tests type into forms.
    at(
        &[
            ".type(",
            ".fill(",
            "send_keys(",
            "sendKeys(",
            "setValue(",
            "set_value(",
        ],
        r#"(?i)(?:pass(?:word|wd|phrase)?|pwd)\b[^\n;]{0,40}?\.(?:type|fill|send_?keys|set_?value)\s*\(\s*{Q}"#,
    ),
    at(
        &["type(", "fill(", "setValue("],
        r#"(?i)\b(?:type|fill|setValue)\s*\(\s*["'][^,\n]*(?:pass|pwd)[^,\n]*["']\s*,\s*{Q}"#,
    ),
    at(
        &["fill_in"],
        r#"(?i)\bfill_in\s*\(?\s*:?["']?[^"',\n]*(?:pass|pwd)[^"',\n]*["']?\s*,\s*(?:with:|:with\s*=>)\s*{Q}"#,
    ),
    at(
        &["PlainAuth"],
        r#"\bPlainAuth\(\s*"[^"\n]*"\s*,\s*"[^"\n]*"\s*,\s*{Q}"#,
    ),
    strong(
        "key",
        &["Fernet(", "AESGCM(", "ChaCha20Poly1305("],
        r#"\b(?:Fernet|AESGCM|ChaCha20Poly1305)\(\s*b?{Q}"#,
    ),
    strong(
        "password",
        &["toCharArray"],
        r#"(?:"([^"\n]{4,64})")\s*\.\s*toCharArray\(\)"#,
    ),
    strong(
        "cookie",
        &["cookie"],
        r#"(?i)\bcookies?["']?\s*[:=]\s*\{[^{}\n]*?["'][\w.-]*(?:sess|sid|auth|token|jwt|login|remember|csrf)[\w.-]*["']\s*[:,=]\s*{Q}"#,
    ),
    at(
        &["basic auth"],
        r#"(?i)\bbasic\s+auth(?:entication)?\s*[:=]\s*["'`]?[\w.@+-]{2,40}\s?[:/]\s?["'`]?([^\s"'`,;/()]{4,64})"#,
    ),
    at(
        &["login:", "login =", "account:", "account ="],
        r#"(?i)\b(?:login|account)\s*[:=]\s*["'`]?[\w.+-]+@[\w.-]+["'`]?\s?[:/|]\s?["'`]?([^\s"'`,;/()]{5,64})"#,
    ),
    at(
        &[
            "mysqli",
            "mysql_connect",
            "getConnection",
            "PDO(",
            "ftp_login",
            "ssh2_auth",
        ],
        r#"(?i)(?:mysqli(?:_connect)?|mysql_connect|getConnection|\bPDO|ftp_login|ssh2_auth_password)\s*\(\s*[^,()\n]+,\s*["'][^"'\n]*["']\s*,\s*{Q}"#,
    ),
    strong(
        "password",
        &[
            "cred",
            "login",
            "log in",
            "logged in",
            "sign in",
            "account",
            "admin",
            "default user",
            "root",
            "登录",
            "登陆",
            "账号",
            "帐号",
        ],
        r#"(?i)(?:登录用?|登陆用?|账号|帐号|\b(?:creds?|credentials?|log\s?in(?:\s+(?:with|as|using))?|logged\s+in\s+(?:with|as)|sign(?:ed)?\s+in\s+(?:with|as)|account|defaults?|admin|root)\b)(?:\s+(?:are|is|was)|是|为)?(?:\s*(?:：|[:=])\s*|\s+)["'`(]?[\w.@+-]{2,40}["'`]?\s?[:/]\s?["'`]?([^\s"'`,;/()\[\]{}]{5,64})"#,
    ),
];

/// Name and value as two fields: group `k` is the name, `v` or `w` the value.
pub(super) const PAIRS: &[&str] = &[
    // YAML, JSON: `name: DB_PASSWORD`, then `value: X`.
    r#"(?i)["']?\b(?:name|key|variable|parameter(?:key)?|parametername)["']?\s*[:=]\s*["']?(?P<k>[A-Za-z0-9_.-]{3,64})["']?\s*[,;]?\s*["']?(?:\w*value|default|val|plaintext|content)["']?\s*[:=]\s*(?:["'](?P<v>[^"'\n]+)["']|(?P<w>[^\s"',}]+))"#,
    r#"(?i)["']?\bvalue["']?\s*[:=]\s*["'](?P<v>[^"'\n]+)["']\s*,\s*["']?(?:name|key)["']?\s*[:=]\s*["'](?P<k>[A-Za-z0-9_.-]{3,64})["']"#,
    // XML: attributes, elements, property lists.
    r#"(?i)\b(?:name|key|id|property|code|option|argument)\s*=\s*["'](?P<k>[A-Za-z0-9_.: -]{3,64})["'][^>\n]{0,80}?\b(?:value|val|content|default)\s*=\s*["'](?P<v>[^"'\n]+)["']"#,
    r#"(?i)\b(?:name|key|id|property)\s*=\s*["'](?P<k>[A-Za-z0-9_.: -]{3,64})["'][^>\n]*>\s*(?:<value>\s*)?(?:<!\[CDATA\[)?(?P<v>[^<>\n]{3,200}?)\s*(?:\]\]>)?</"#,
    r#"(?i)<key>\s*(?P<k>[A-Za-z0-9_.: -]{3,64})\s*</key>\s*<string>(?P<v>[^<>\n]{3,200})</string>"#,
    r#"(?i)<(?:[a-z]+-)?name>\s*(?P<k>[A-Za-z0-9_.: -]{3,64})\s*</(?:[a-z]+-)?name>\s*<(?:[a-z]+-)?value>(?P<v>[^<>\n]{3,200})</"#,
    r#"(?i)<(?:[a-z0-9]+:)?(?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)(?:\s[^<>\n]*)?>\s*(?:<!\[CDATA\[)?(?P<v>[^<>\n]{3,200}?)\s*(?:\]\]>)?</"#,
    r#"(?i)<(?:[a-z0-9]+:)?(?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)\s(?:[^<>\n]*\s)?(?:value|val)\s*=\s*["'](?P<v>[^"'\n]{3,200})["']"#,
    r#"(?i)["'](?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)["']\s*[:=]\s*\{\s*["']?(?:value|default|defaultvalue|plaintext|secret)["']?\s*[:=]\s*["'](?P<v>[^"'\n]{3,200})["']"#,
    // `set -x DB_PASSWORD X` of the fish shell.
    r#"\bset\s+-\w+\s+(?P<k>[A-Z][A-Z0-9_]{2,63})\s+(?:["'](?P<v>[^"'\n]+)["']|(?P<w>[^\s"';|&]+))"#,
    // Terraform, CloudFormation.
    r#"(?i)\bvariable\s+["'](?P<k>[A-Za-z0-9_-]{3,64})["']\s*\{[^}]{0,200}?\bdefault\s*=\s*["'](?P<v>[^"'\n]+)["']"#,
    r#"(?i)\b(?P<k>[A-Za-z0-9_-]*(?:password|secret|token|apikey))\s*:\s*\n(?:\s+\w+:[^\n]*\n){0,3}?\s+default\s*:\s*["']?(?P<v>[^\s"']+)"#,
];
