package loom

import "time"

// DraftLife is how long a form that was not saved is kept after its last change.
const DraftLife = 7 * 24 * time.Hour

// ImportLife is how long an uploaded bundle or archive is kept until it is imported.
const ImportLife = time.Hour
