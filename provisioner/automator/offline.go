package automator

// Offline is what an automator without machines implements, such as the one for
// load tests: it then gets no connection (nil).
type Offline interface {
	// Offline reports whether the automator does without a connection.
	Offline() bool
}
