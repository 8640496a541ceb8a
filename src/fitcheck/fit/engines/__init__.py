"""What each inference engine allocates for a model's layer groups: one module an engine, one interface (`base`)."""
