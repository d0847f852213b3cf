//! Sample data of the demos, derived from a message: a language, a city, its weather.
//!
//! The random generator is seeded with a hash of the message, so that the same message gives the same weather.

/// The language of a demo's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

impl Language {
    /// Detects the language of a message: Chinese if it has Chinese characters and no Japanese ones.
    pub(super) fn of(message: &str) -> Self {
        let han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}');
        let kana = |c: char| matches!(c, '\u{3041}'..='\u{30ff}');
        match message.contains(han) && !message.contains(kana) {
            true => Self::Chinese,
            false => Self::English,
        }
    }
}

/// Pseudo-random numbers seeded with a text.
#[derive(Debug, Clone)]
pub(super) struct SeededRng(u64);

impl SeededRng {
    /// Creates a generator from the hash of a text.
    pub(super) fn from(text: &str) -> Self {
        Self(hash(text))
    }

    /// Returns a number from a range, both ends included.
    pub(super) fn between(&mut self, min: i64, max: i64) -> i64 {
        // SplitMix64: small, and good enough for a forecast.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = max.abs_diff(min).saturating_add(1);
        min.saturating_add_unsigned((mixed ^ (mixed >> 31)) % span)
    }
}

/// Hashes a text the same way on every machine (FNV-1a).
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A name in both languages.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalizedName {
    pub(super) en: &'static str,
    pub(super) zh: &'static str,
}

impl LocalizedName {
    /// Returns the name in a language.
    pub(super) fn in_language(self, language: Language) -> &'static str {
        match language {
            Language::English => self.en,
            Language::Chinese => self.zh,
        }
    }
}

const fn name(en: &'static str, zh: &'static str) -> LocalizedName {
    LocalizedName { en, zh }
}

/// A city to talk about.
#[derive(Debug)]
pub(super) struct City {
    /// Its id in tool calls.
    pub(super) id: &'static str,
    pub(super) name: LocalizedName,
    pub(super) currency: &'static str,
    pub(super) asian: bool,
    /// A usual high, in °C.
    warmth: i64,
    /// Places to go, and whether they are indoors.
    pub(super) places: [(LocalizedName, bool); 3],
}

pub(super) static CITIES: [City; 8] = [
    City {
        id: "hangzhou",
        name: name("Hangzhou", "杭州"),
        currency: "¥",
        asian: true,
        warmth: 22,
        places: [
            (name("West Lake", "西湖"), false),
            (name("Longjing tea fields", "龙井茶园"), false),
            (name("China National Silk Museum", "中国丝绸博物馆"), true),
        ],
    },
    City {
        id: "beijing",
        name: name("Beijing", "北京"),
        currency: "¥",
        asian: true,
        warmth: 18,
        places: [
            (name("Summer Palace", "颐和园"), false),
            (name("Jingshan Park", "景山公园"), false),
            (name("National Museum", "国家博物馆"), true),
        ],
    },
    City {
        id: "shanghai",
        name: name("Shanghai", "上海"),
        currency: "¥",
        asian: true,
        warmth: 21,
        places: [
            (name("the Bund", "外滩"), false),
            (name("Yu Garden", "豫园"), false),
            (name("Shanghai Museum", "上海博物馆"), true),
        ],
    },
    City {
        id: "chengdu",
        name: name("Chengdu", "成都"),
        currency: "¥",
        asian: true,
        warmth: 20,
        places: [
            (name("the panda base", "大熊猫繁育研究基地"), false),
            (name("People's Park", "人民公园"), false),
            (name("Sichuan Opera", "川剧院"), true),
        ],
    },
    City {
        id: "kunming",
        name: name("Kunming", "昆明"),
        currency: "¥",
        asian: true,
        warmth: 19,
        places: [
            (name("Dianchi Lake", "滇池"), false),
            (name("the Stone Forest", "石林"), false),
            (name("Yunnan Provincial Museum", "云南省博物馆"), true),
        ],
    },
    City {
        id: "paris",
        name: name("Paris", "巴黎"),
        currency: "€",
        asian: false,
        warmth: 17,
        places: [
            (name("Jardin du Luxembourg", "卢森堡公园"), false),
            (name("the banks of the Seine", "塞纳河畔"), false),
            (name("Musée d'Orsay", "奥赛博物馆"), true),
        ],
    },
    City {
        id: "london",
        name: name("London", "伦敦"),
        currency: "£",
        asian: false,
        warmth: 15,
        places: [
            (name("Kew Gardens", "邱园"), false),
            (name("the South Bank", "泰晤士河南岸"), false),
            (name("the British Museum", "大英博物馆"), true),
        ],
    },
    City {
        id: "berlin",
        name: name("Berlin", "柏林"),
        currency: "€",
        asian: false,
        warmth: 16,
        places: [
            (name("Tiergarten", "蒂尔加滕公园"), false),
            (name("Wannsee", "万湖"), false),
            (name("Pergamon Panorama", "佩加蒙全景馆"), true),
        ],
    },
];

/// The weather of a day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    pub(super) label: LocalizedName,
    pub(super) sky: LocalizedName,
    pub(super) low: i64,
    pub(super) high: i64,
    /// The chance of rain, in percent.
    pub(super) rain: i64,
}

const LABELS: [LocalizedName; 5] = [
    name("Today", "今天"),
    name("Tomorrow", "明天"),
    name("In 2 days", "后天"),
    name("In 3 days", "三天后"),
    name("In 4 days", "四天后"),
];

impl City {
    /// Generates the weather of the coming days.
    pub(super) fn forecast(&self, rng: &mut SeededRng) -> [Day; 5] {
        LABELS.map(|label| {
            let high = self.warmth + rng.between(-4, 5);
            let low = high - rng.between(5, 9);
            let rain = rng.between(0, 18) * 5;
            let sky = match rain {
                0..=15 => name("sunny", "晴"),
                16..=35 => name("partly cloudy", "多云"),
                36..=60 => name("overcast", "阴"),
                _ => name("rain", "小雨"),
            };
            Day { label, sky, low, high, rain }
        })
    }

    /// Returns the city that a message names.
    pub(super) fn named_in(message: &str) -> Option<&'static Self> {
        let lower = message.to_lowercase();
        CITIES.iter().find(|city| message.contains(city.name.zh) || lower.contains(city.id))
    }
}

/// Returns the first day with the least rain.
pub(super) fn driest(days: &[Day; 5]) -> Day {
    days.iter().skip(1).fold(days[0], |best, day| if day.rain < best.rain { *day } else { best })
}

/// Truncates a text to quote it on one line.
pub(super) fn quoted(text: &str, max: usize) -> String {
    let mut words = String::new();
    let mut spoken = text.chars().map(|c| if c.is_control() || c.is_whitespace() { ' ' } else { c });
    let mut left = max;
    for c in &mut spoken {
        if c == ' ' && (words.is_empty() || words.ends_with(' ')) {
            continue;
        }
        if left == 0 {
            return format!("{}…", words.trim_end());
        }
        words.push(c);
        left -= 1;
    }
    words.truncate(words.trim_end().len());
    words
}
