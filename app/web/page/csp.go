package page

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
)

// Reports come from anybody: they are small, few, and only known fields are logged.
const (
	maxReport         = 2 << 10
	reportsPerMinute  = 10
	reportsPerPlace   = 3 // of them: who forges some does not keep out those of others
	maxReportedLength = 200
)

// reports counts what came about the content policy within a minute.
type reports struct {
	mu     sync.Mutex
	minute time.Time
	logged int
	of     map[string]int // by place
	left   int
}

// next reports whether one more from a place may be logged, and how many were not since the
// last.
func (c *reports) next(now time.Time, place string) (left int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.minute) >= time.Minute {
		c.minute, c.logged, c.of = now, 0, map[string]int{}
	}
	if c.logged >= reportsPerMinute || c.of[place] >= reportsPerPlace {
		c.left++
		return 0, false
	}
	left, c.left = c.left, 0
	c.logged++
	c.of[place]++
	return left, true
}

// cspBody is what is told of something that the content policy kept out, in the words of
// the Reporting API and in those before it.
type cspBody struct {
	Document    string  `json:"documentURL"`
	Blocked     string  `json:"blockedURL"`
	Directive   string  `json:"effectiveDirective"`
	Disposition string  `json:"disposition"`
	Source      string  `json:"sourceFile"`
	Line        float64 `json:"lineNumber"`

	OldDocument  string  `json:"document-uri"`
	OldBlocked   string  `json:"blocked-uri"`
	OldDirective string  `json:"effective-directive"`
	OldSource    string  `json:"source-file"`
	OldLine      float64 `json:"line-number"`
}

// readReports reads both forms; nil for what is neither.
func readReports(body []byte) []cspBody {
	if loom.ScanJSON(body, 0) != nil {
		return nil
	}
	var list []struct {
		Type string  `json:"type"`
		Body cspBody `json:"body"`
	}
	if json.Unmarshal(body, &list) == nil {
		var found []cspBody
		for _, report := range list {
			if report.Type == "csp-violation" {
				found = append(found, report.Body)
			}
		}
		return found
	}
	var old struct {
		Report *cspBody `json:"csp-report"`
	}
	if json.Unmarshal(body, &old) != nil || old.Report == nil {
		return nil
	}
	b := *old.Report
	return []cspBody{{Document: b.OldDocument, Blocked: b.OldBlocked, Directive: b.OldDirective, Disposition: b.Disposition, Source: b.OldSource, Line: b.OldLine}}
}

// cspReport logs what the content policy kept out.
func (s *Shared) cspReport(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReport+1))
	if err != nil {
		return &loom.Error{Kind: loom.Invalid, Message: "The report could not be read.", Err: err}
	}
	if len(body) > maxReport {
		return loom.NewError(loom.Invalid, "The report is larger than %d KiB.", maxReport>>10)
	}
	for _, b := range readReports(body) {
		left, ok := s.reports.next(s.Now(), loom.PlaceOf(httpx.Address(r)))
		if !ok {
			continue
		}
		s.Log.Warn("content policy report", "request_id", httpx.RequestID(r), "document", reported(b.Document), "blocked", reported(b.Blocked),
			"directive", reported(b.Directive), "disposition", reported(b.Disposition), "source", reported(b.Source), "line", b.Line, "left_out", left)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// reported is a text of a report as it is logged.
func reported(text string) string {
	if r := []rune(text); len(r) > maxReportedLength {
		return string(r[:maxReportedLength]) + "…"
	}
	return text
}
