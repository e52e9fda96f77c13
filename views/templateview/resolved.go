package templateview

// LockedKey is a config key that an immutable partial template keeps to itself.
type LockedKey struct{ Key, Value, By string }

// ResolvedModel is a template merged with what it extends and includes: each value
// with the part that says it.
type ResolvedModel struct {
	// Problem says why it cannot be merged; nothing else is there then.
	Problem string
	// Alone says that it extends and includes nothing.
	Alone  bool
	Groups []ResolvedGroup
}

// ResolvedGroup is values that belong together.
type ResolvedGroup struct {
	Title string
	Rows  []ResolvedRow
}

// ResolvedRow is a value. From is "this template", or the part it comes from, with a
// link; Over names those whose value it replaced.
type ResolvedRow struct {
	Term, Value, From, Href, Over string
	Locked                        bool
	Own                           bool
}
