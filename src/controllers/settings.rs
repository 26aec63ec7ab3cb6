//! Tells people about the settings: an Event on the `ConfigMap` and a metric.
//!
//! Owns that each change is told once, by whoever leads. Must not act on settings.

use tokio::sync::watch;
use tracing::{error, info};

use crate::clock;
use crate::cluster::events::Publisher;
use crate::cluster::settings::Seen;
use crate::fence::Fence;
use crate::metrics::SettingsMetrics;
use crate::plan::settings::{InForce, Trouble};
use crate::plan::step::Notice;

/// Tells as long as the process lives, once it leads.
pub async fn tell(mut settings: watch::Receiver<Seen>, publisher: Publisher, fence: Fence, metrics: SettingsMetrics) {
    fence.opened().await;
    loop {
        let Seen { in_force, object } = settings.borrow_and_update().clone();
        metrics.trouble(matches!(in_force.trouble, Some(Trouble::Broken(_))));
        let notice = notice(&in_force);
        match (&object, notice) {
            (Some(object), Some(notice)) => {
                if notice.warning {
                    error!(message = notice.message, "settings");
                } else {
                    info!(message = notice.message, "settings");
                }
                publisher.publish(object, &notice, clock::now()).await;
            }
            (None, _) if in_force.binding().is_some() => {
                error!(message = in_force.complaint(), "settings");
            }
            _ => {}
        }
        if settings.changed().await.is_err() {
            return;
        }
    }
}

/// What is said about the settings; nothing where there are none.
fn notice(in_force: &InForce) -> Option<Notice> {
    if let Some(complaint) = in_force.complaint() {
        return Some(Notice {
            warning: true,
            reason: "SettingsInvalid",
            message: complaint,
        });
    }
    let settings = in_force.sound()?;
    let locks = settings.locks.as_ref().map_or(0, Vec::len);
    let freeze = if settings.freeze.enabled { ", a freeze" } else { "" };
    Some(Notice {
        warning: false,
        reason: "SettingsAccepted",
        message: format!(
            "in force: {} schedules, {locks} locks{freeze}; auto-approver {}",
            settings.schedules.len(),
            if settings.auto_approver { "on" } else { "off" }
        ),
    })
}
