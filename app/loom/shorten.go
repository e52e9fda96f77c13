package loom

// MaxRecorded is how much the audit and the log of a process keep of a name or a path, in
// bytes: whoever asks chooses its length.
const MaxRecorded = 300

// Recorded gives what is kept of a name or a path.
func Recorded(text string) string {
	if len(text) <= MaxRecorded {
		return text
	}
	return Cut(text, MaxRecorded-len("…"))
}
