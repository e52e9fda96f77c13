//go:build browser

package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
)

// refusal words what the content security policy of a page refused, "" for any other
// event. Chromium tells of it twice: as an issue, with the directive, and as an entry
// of its log.
func refusal(event any) string {
	switch e := event.(type) {
	case *audits.EventIssueAdded:
		if e.Issue.Code != audits.InspectorIssueCodeContentSecurityPolicyIssue || e.Issue.Details == nil || e.Issue.Details.ContentSecurityPolicyIssueDetails == nil {
			return ""
		}
		d := e.Issue.Details.ContentSecurityPolicyIssueDetails
		at := ""
		if l := d.SourceCodeLocation; l != nil {
			at = fmt.Sprintf(" at %s:%d", l.URL, l.LineNumber+1)
		}
		return fmt.Sprintf("%s: %s %s%s", d.ViolatedDirective, d.ContentSecurityPolicyViolationType, d.BlockedURL, at)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity && strings.Contains(e.Entry.Text, "Content Security Policy") {
			return e.Entry.Text
		}
	}
	return ""
}

// Refused returns what the content security policies of the pages refused so far. The
// test fails at its end when there is any: no page of Loom needs what it forbids.
func (b *Browser) Refused() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.refused...)
}
