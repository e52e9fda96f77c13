package clusters

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a fleet preview as Markdown.
const (
	markdownNames = 50
	markdownSize  = 60_000
)

// Markdown is the preview as Markdown, for a comment on a change of the catalog: counts,
// price, and a row for each group with at most 50 names; at most 60,000 characters.
func (p *FleetPreview) Markdown() string { return p.MarkdownAfter("") }

// MarkdownAfter is Markdown with something above it, which counts.
func (p *FleetPreview) MarkdownAfter(head string) string {
	if p.Clusters == 0 {
		return head + "### Effect on clusters\n\nNo clusters are affected.\n"
	}
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "### Effect on %s\n\n", count(p.Clusters, "cluster"))
	b.WriteString(p.Summary())
	if p.Before != nil {
		fmt.Fprintf(&b, ", %+.2f an hour", *p.After-*p.Before)
	}
	b.WriteString(".\n")
	for _, e := range p.Entries[:min(len(p.Entries), markdownNames)] {
		fmt.Fprintf(&b, "\n- %s %s v%d", e.Kind.Word(), MarkdownText(e.Name), e.Version)
	}
	if more := len(p.Entries) - markdownNames; more > 0 {
		fmt.Fprintf(&b, "\n- and %d more", more)
	}
	for _, f := range p.Files[:min(len(p.Files), markdownNames)] {
		fmt.Fprintf(&b, "\n- file %s v%d", MarkdownText(f.Name), f.Version)
	}
	if more := len(p.Files) - markdownNames; more > 0 {
		fmt.Fprintf(&b, "\n- and %d more files", more)
	}
	if len(p.Groups) > 0 {
		b.WriteString("\n\n| Effect | Why | Clusters |\n|---|---|---|\n")
	}
	const rest = "\n%d more groups are left out.\n"
	size := utf8.RuneCountInString(b.String()) + len(rest)
	for i, g := range p.Groups {
		row := markdownRow(g)
		if size += utf8.RuneCountInString(row); size > markdownSize {
			fmt.Fprintf(&b, rest, len(p.Groups)-i)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

func markdownRow(g FleetGroup) string {
	names := make([]string, 0, markdownNames+1)
	for _, m := range g.Members[:min(len(g.Members), markdownNames)] {
		names = append(names, MarkdownText(m.Name))
	}
	if more := len(g.Members) - markdownNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("| %s | %s | %d: %s |\n", g.Effect.Word(), MarkdownText(g.Why()), len(g.Members), strings.Join(names, ", "))
}

// MarkdownText escapes a text for a cell of a table.
func MarkdownText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r':
			b.WriteByte(' ')
			continue
		case strings.ContainsRune("\\`*_{}[]<>#+!|&~@", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
