package loom

import "time"

// JournalID names a journal that somebody follows.
type JournalID string

// Journal is what a service writes on a node, as somebody follows it.
type Journal struct {
	ID      JournalID
	Tenant  TenantID
	Cluster ClusterID
	Node    NodeID
	Service string
	// Lines is how many lines of the past it begins with, of each unit and file; Follow says
	// that those that come are wanted too.
	Lines  int
	Follow bool
	// Began says that its first lines are there, if it has any.
	Began bool
	// Ended says that no more lines come, and Message why, "" for a journal that was read to its end.
	Ended   bool
	Message string
}

// JournalLine is a line of a journal.
type JournalLine struct {
	// Seq numbers lines from 1.
	Seq int
	// Time is when it was read.
	Time time.Time
	Text string
	// Skipped is how many lines, which came too fast, were left out here; 0 for a line itself.
	Skipped int
}

// JournalTarget is what it takes to follow a journal. It holds revealed secrets and lives
// in memory only.
type JournalTarget struct {
	Journal
	Spec *TaskSpec
	// Trouble is why there is no Spec.
	Trouble string
	Logs    ServiceLogs
	// Start is the action by which the service is started.
	Start ServiceAction
}

// Bounds of journals.
const (
	JournalRate      = 200       // lines a second
	JournalBytes     = 1_000_000 // of one journal
	JournalTime      = 10 * time.Minute
	JournalWanted    = 30 * time.Second // without a reader
	JournalsOfUser   = 3                // open at once
	JournalsOfNode   = 4                // open at once: others need sessions on the machine too
	MaxJournalLines  = 1000             // of the past
	journalLineExtra = 32               // bytes that a line counts beside its text
)

// What a reader is told at the end of a journal that nobody follows any longer.
const (
	JournalLost    = "The provisioner was lost; open the journal again."
	JournalUntaken = "No provisioner was free to follow the journal; open it again."
	JournalUnread  = "Nobody was reading; open the journal again."
)

// HasJournal reports whether Loom knows where the service writes its journal.
func (s *Service) HasJournal() bool {
	return s.Logs != nil && len(s.Logs.Units)+len(s.Logs.Files) > 0 || s.Provisioner.Actions[ActionStart].Type == "docker"
}

// JournalMeter keeps a journal within its bounds. The zero value allows no lines of the past.
type JournalMeter struct {
	// Past is how many lines may come at once at the beginning, beside JournalRate.
	Past   int
	began  time.Time // of the running second
	lines  int       // in it
	bytes  int
	missed int
}

// Take counts a line that comes at a time. take is false for one that comes too fast, and
// full says that it would be too much for the whole journal.
func (m *JournalMeter) Take(text string, now time.Time) (take, full bool) {
	if now.Sub(m.began) >= time.Second {
		if !m.began.IsZero() {
			m.Past = 0
		}
		m.began, m.lines = now, 0
	}
	if m.lines++; m.lines > JournalRate+m.Past {
		m.missed++
		return false, false
	}
	m.bytes += len(text) + journalLineExtra
	return true, m.bytes > JournalBytes
}

// Skipped returns how many lines came too fast since it last did, once their second is over
// or, with now as the zero time, at once.
func (m *JournalMeter) Skipped(now time.Time) int {
	if !now.IsZero() && now.Sub(m.began) < time.Second {
		return 0
	}
	n := m.missed
	m.missed = 0
	return n
}
