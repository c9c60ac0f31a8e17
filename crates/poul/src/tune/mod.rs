//! Search for settings.
