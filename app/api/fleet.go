package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
)

func (a *api) createFleetPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadFleet(body)
	if err != nil {
		return err
	}
	p, err := a.Clusters.FleetPreview(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerFleet(w, r, p)
}

// fleetOf works out what an import would do to clusters: the change of each entry that it brings.
func (a *api) fleetOf(r *http.Request, actor loom.Actor, report catalog.Report) (clusters.FleetPreview, error) {
	in := clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Drafts: report.Drafts}
	if len(in.Drafts) == 0 {
		return clusters.FleetPreview{Kind: loom.ChangeUpdate}, nil
	}
	return a.Clusters.FleetPreview(r.Context(), actor, in)
}

func answerFleet(w http.ResponseWriter, r *http.Request, p clusters.FleetPreview) error {
	w.Header().Add("Vary", "Accept")
	if accepted(r, mediaJSON, mediaMarkdown) == mediaMarkdown {
		return answerBytes(w, r, []byte(p.Markdown()), mediaMarkdown, "")
	}
	return answer(w, r, wire.NewFleetPreview(p))
}

// answerImportFleet says what an import would do, with what it would do to clusters. Headers sum it
// up for programs that read no Markdown.
func answerImportFleet(w http.ResponseWriter, r *http.Request, report catalog.Report, p clusters.FleetPreview) error {
	w.Header().Add("Vary", "Accept")
	w.Header().Set(httpx.HeaderInvalid, strconv.Itoa(len(report.Invalid)))
	w.Header().Set(httpx.HeaderEffect, string(p.Strongest()))
	if accepted(r, mediaJSON, mediaMarkdown) == mediaMarkdown {
		return answerBytes(w, r, []byte(p.MarkdownAfter(importMarkdown(report))), mediaMarkdown, "")
	}
	out, shown := wire.NewImportReport(report), wire.NewFleetPreview(p)
	out.Fleet = &shown
	return answer(w, r, out)
}

// maxInvalidLines is how many errors the Markdown of an import lists, maxInvalidLine how many
// characters of one.
const (
	maxInvalidLines = 20
	maxInvalidLine  = 300
)

// importMarkdown counts the entries of an import, and lists what is wrong with invalid ones.
func importMarkdown(report catalog.Report) string {
	var b strings.Builder
	b.WriteString("### Import\n\n")
	fmt.Fprintf(&b, "%d new, %d changed, %d the same, %d removed, %d invalid.\n\n", len(report.New), len(report.Changed), len(report.Same), len(report.Removed), len(report.Invalid))
	lines := 0
	for _, entry := range report.Invalid {
		for _, f := range entry.Fields {
			if lines++; lines <= maxInvalidLines {
				line := []rune(fmt.Sprintf("%s %s, %s: %s", entry.Kind.Word(), entry.Name, f.Field, f.Message))
				fmt.Fprintf(&b, "- %s\n", clusters.MarkdownText(string(line[:min(len(line), maxInvalidLine)])))
			}
		}
	}
	if more := lines - maxInvalidLines; more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	if lines > 0 {
		b.WriteString("\n")
	}
	return b.String()
}
