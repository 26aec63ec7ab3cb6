//! Tests of the group's plan on the toy world: whole stories as transcripts, and the cases of the gate.

mod cases;
mod hands_off;
mod stories;
mod upkeep;
