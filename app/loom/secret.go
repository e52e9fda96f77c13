package loom

import "log/slog"

// Redacted stands in the place of a secret in texts that people see.
const Redacted = "[redacted]"

// Secret holds a sensitive text. Printing, logging and JSON give
// "[redacted]"; only Reveal gives the text.
type Secret struct{ text string }

// NewSecret wraps a sensitive text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal gives the text. Call it where the secret is used, never to store or
// print it.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String hides the text.
func (s Secret) String() string { return Redacted }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return Redacted }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// LogValue hides the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
