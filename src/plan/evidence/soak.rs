//! Proof that was given for images, and ended.
//!
//! Owns the longest span for each schedule and image. Must not judge whether it suffices; the approval policy does.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Images kept for each schedule: the ones proven last.
const IMAGES: usize = 20;

/// A span in which a group was fully on an image and Ready without a break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Soaked {
    /// The group, as `namespace/name`.
    pub group: String,
    /// Its begin.
    pub since: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

impl Soaked {
    fn lasted(&self) -> SignedDuration {
        self.until.duration_since(self.since)
    }
}

/// The longest span for each schedule and image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SoakRecord {
    schedules: BTreeMap<String, BTreeMap<String, Soaked>>,
}

impl SoakRecord {
    /// The longest span that ended.
    #[must_use]
    pub fn longest(&self, schedule: &str, image: &str) -> Option<&Soaked> {
        self.schedules.get(schedule)?.get(image)
    }

    /// A span ended. Returns whether the record is another one now.
    pub fn ended(&mut self, schedule: &str, image: &str, span: Soaked) -> bool {
        let images = self.schedules.entry(schedule.to_owned()).or_default();
        if images.get(image).is_some_and(|known| known.lasted() >= span.lasted()) {
            return false;
        }
        images.insert(image.to_owned(), span);
        while images.len() > IMAGES {
            let oldest = images.iter().min_by_key(|(_, span)| span.until);
            let Some(oldest) = oldest.map(|(image, _)| image.clone()) else {
                break;
            };
            images.remove(&oldest);
        }
        true
    }

    /// Takes over what an earlier process recorded.
    pub fn after(&mut self, earlier: Self) {
        for (schedule, images) in earlier.schedules {
            for (image, span) in images {
                self.ended(&schedule, &image, span);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn span(since: i64, until: i64) -> Soaked {
        Soaked {
            group: "team/workers".to_owned(),
            since: Timestamp::from_second(since).unwrap(),
            until: Timestamp::from_second(until).unwrap(),
        }
    }

    #[test]
    fn the_longest_span_is_kept() {
        let mut record = SoakRecord::default();
        assert!(record.ended("staging", "ami-1", span(0, 10)));
        assert!(!record.ended("staging", "ami-1", span(20, 29)));
        assert!(!record.ended("staging", "ami-1", span(20, 30)));
        assert!(record.ended("staging", "ami-1", span(40, 60)));
        assert_eq!(record.longest("staging", "ami-1"), Some(&span(40, 60)));
        assert_eq!(record.longest("staging", "ami-2"), None);
        assert_eq!(record.longest("dev", "ami-1"), None);
        let mut later = SoakRecord::default();
        later.ended("staging", "ami-1", span(0, 5));
        later.after(record.clone());
        assert_eq!(later, record);
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let mut record = SoakRecord::default();
        for number in 0..100 {
            record.ended("staging", &format!("ami-{number}"), span(number, number + 5));
        }
        assert_eq!(record.schedules["staging"].len(), IMAGES);
        assert!(record.longest("staging", "ami-99").is_some() && record.longest("staging", "ami-79").is_none());
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<SoakRecord>(&text).unwrap(), record);
    }
}
