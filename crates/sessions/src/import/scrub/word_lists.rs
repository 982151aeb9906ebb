//! The words by which keys and values in password position are judged, in lower case.

/// Words with blanks between them.
pub(super) struct WordList(pub(super) &'static str);

impl WordList {
    /// Whether this is one of the words.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.split_ascii_whitespace().any(|listed| listed == word)
    }
}

/// Words before `key` that make it a secret.
pub(super) const KEY_MODIFIERS: WordList = WordList(
    "api secret access private auth encryption signing master shared license service account consumer app \
     application security session crypt crypto aes hmac jwt deploy webhook admin subscription storage \
     write ssh wallet recovery activation authorization cipher root x preshared presharedkey sas rest \
     server client decryption data",
);

/// Words after the word for a secret that make it something else.
pub(super) const NOT_AFTER: WordList = WordList(
    "length len min max minimum maximum policy policies hash hashed hashes hasher hashing digest md sha \
     checksum fingerprint expires expire expired expiry expiration ttl age timeout lifetime duration \
     interval period date time at on days hours minutes seconds field fields label labels hint help error \
     errors message msg placeholder title prompt question regex regexp pattern format file files filename \
     path dir env variable name names type types kind class count counts counter limit limits size budget \
     usage used url uri endpoint link id ids index idx version algorithm alg algo encoding rotation \
     required enabled disabled allowed optional strength score level validator validation manager \
     provider storage service handler helper helpers util utils factory generator encoder decoder parser \
     reader writer middleware filter guard header headers prefix suffix scheme status state valid invalid \
     changed change updated created reset resets history attempts attempt tries retries complexity rules \
     rule requirements option options config settings mode source ref reference arn selector component \
     form view page screen box bytes chars position offset stream map list dict array table column row \
     schema model entity dto test tests spec mock exists missing less based protected check checker match \
     matches mismatch strategy kwargs func fn callback ring logo icon bucket group role username owner \
     holder only per rate price cost total sum ratio window dim embedding embeddings mask overlap \
     management protection recovery authentication rounds iterations salt stdin fd prompts s through word \
     thru visible hidden shown ok set is py js ts rs go java rb md5 txt html css vue tsx jsx json yml \
     yaml toml ini sh conf",
);

/// Words before the word for a secret that make it something else.
pub(super) const NOT_BEFORE: WordList = WordList(
    "has is no show hide toggle forgot require requires required needs min max num total prompt \
     completion cached reasoning hashed encrypted public primary foreign sort partition next page \
     continuation sync pad eos bos unk sep cls mask special stop per expect without disable enable allow \
     by pos first num cancellation cancel previous prev",
);

/// Texts that stand for no value, in lower case and without the signs around them.
pub(super) const UNSAID: WordList = WordList(
    " none null nil undefined true false yes no on off n/a na unset empty required optional redacted \
     hidden masked password passwd passphrase pass pwd secret token credentials username user changeme \
     example placeholder dummy todo tbd fixme xxx string unknown missing default omitted stdin prompt \
     private public sensitive encrypted plain login key apikey api_key access_token foobar foo bar baz \
     asdf not-set value your sha256 sha512 md5 sha1 bcrypt argon2 scram-sha-256 trust",
);

/// Words in the names of fields that contain a secret; the empty one stands for no word.
pub(super) const LABEL_WORDS: WordList = WordList(
    " db user username new old confirm current enter the admin root api access refresh auth client app my \
     id key secret private public bearer basic csrf session login email type string field name value \
     reset hash is text",
);

/// Bare words after `password:` and `password =` that are types.
pub(super) const TYPES: WordList = WordList(
    "str string text varchar char bytes byte int integer number bool boolean any object option optional \
     secretstr secretstring securestring uint8array buffer varchar2 nvarchar blob unknown never void list \
     array vec map dict self this field charfield column i32 i64 u32 u64 usize float double long uuid \
     date datetime json jsonb &str *string []byte password schema",
);

/// Bare words after `password =` that are names in code or words of a sentence.
pub(super) const CODE_WORDS: WordList = WordList(
    "value input data result answer arg args argv payload raw body item entry match obj line content \
     response req request res params param options opts config cfg ctx context state props x y s p v w \
     val tmp temp buf output stdin stdout variable var field form query the a an see ask use same must \
     should will is are was be not only all any both wrong incorrect correct invalid valid accepted \
     rejected authentication updated changed unchanged expired failed success successful error ok done \
     set reset new old hashed stored plaintext mandatory env environment vault keyring file manual auto \
     generated random inherit inherited disabled enabled mode type name id super pass return yield raise \
     int len print input_data",
);
