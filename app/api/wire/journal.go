package wire

import "loom/app/loom"

// Journal is what a service wrote on a node.
type Journal struct {
	Lines []JournalLine `json:"lines"`
	End   string        `json:"end,omitempty" description:"Why there are no more lines, where something went wrong."`
}

// JournalLine is a line of a journal.
type JournalLine struct {
	Seq     int    `json:"seq"`
	Time    int64  `json:"time" description:"When it was read; milliseconds since 1970."`
	Text    string `json:"text"`
	Skipped int    `json:"skipped,omitempty" description:"How many lines were left out because they came too fast."`
}

// NewJournalLine returns the wire form of a line.
func NewJournalLine(l loom.JournalLine) JournalLine {
	return JournalLine{Seq: l.Seq, Time: Millis(l.Time), Text: l.Text, Skipped: l.Skipped}
}
