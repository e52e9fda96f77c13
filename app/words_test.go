package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// plainer has a phrase that nobody reads in Loom, and the better word for each. Phrases match
// as whole words, in any case; a space matches a line break too.
var plainer = map[string]string{
	// Words that make a sentence stiff, wherever they are.
	"what was":    "name the thing",
	"of which":    "a second sentence",
	"so many":     "this number of, or the number",
	"for so long": "for this time, or the time",
	"is there":    "exists",
	"stands":      "is",
	"goes on":     "continues",
	"told":        "notified, warned, given",
	"dealt":       "assigned",
	"made up":     "generated",
	"anew":        "again",
	"for ever":    "forever, or for good",
	"of late":     "recently",
	"any more":    "no longer, or more",
	"meanwhile":   "in between, or while …",
	"as it is":    "unchanged",
	"at work":     "running",

	// Texts that pages once had.
	"JSON and curl":                "API and JSON",
	"The same as a table":          "Table",
	"Rows of a page":               "Rows per page",
	"Shortcuts of single keys":     "Single-key shortcuts",
	"Present password":             "Current password",
	"Needs a look":                 "Needs attention",
	"Sign in to go on":             "Sign in to continue",
	"Your sign-in is over":         "Session expired",
	"do again what you":            "repeat your",
	"nodes of the tenant":          "nodes used",
	"Change the lease":             "Change expiry",
	"At the latest":                "Maximum",
	"Prolong by":                   "Extend by",
	"Preview sync":                 "Update template",
	"Take the protection off":      "Unprotect",
	"says the template":            "2–500",
	"as the template says":         "template default",
	"What differs":                 "Changes",
	"take back what":               "Undo changes",
	"Nodes in use afterwards":      "Nodes after",
	"What would work":              "Suggestions",
	"This preview is gone":         "Preview expired",
	"Compute again":                "Recalculate",
	"on the longest path":          "critical path",
	"What stays":                   "Unchanged",
	"Run what is left":             "Run remaining tasks",
	"Leave out":                    "Skip",
	"Nodes that leave":             "Nodes to remove",
	"Facts from the plugins":       "Technical details",
	"Log of all of it":             "All logs",
	"Waited for by":                "Blocks",
	"noted in the audit":           "in the audit log",
	"Reveal key":                   "Download key",
	"Machines left behind":         "Leftover machines",
	"What came of it":              "Results",
	"The cluster is gone":          "Cluster deleted",
	"Against the defaults":         "Changes from default",
	"How they depend on each":      "Dependencies",
	"How its services depend":      "Dependencies",
	"looked at credentials":        "downloaded the key",
	"moved the lease":              "changed expiry",
	"Icon and standing":            "Appearance, status",
	"Offer again":                  "Undeprecate",
	"Not offered for choosing":     "Hidden from pickers",
	"What it has to do with":       "Dependencies",
	"Who shares nodes":             "Placement",
	"Limits of single services":    "Service limits",
	"What fits":                    "Working sizes",
	"keep this from being saved":   "4 errors",
	"Would not work yet":           "Warnings",
	"give a value":                 "Required",
	"Can be saved":                 "Ready to save",
	"Take over into the form":      "Apply to form",
	"What saving affects":          "Affects",
	"See what a sync would do":     "Preview release",
	"Store the version":            "Save",
	"What a script gets":           "Script reference",
	"Check the way out":            "Outbound check",
	"Authorities for host keys":    "Trusted host CAs",
	"Give machines their host key": "Inject host key",
	"Keystone address":             "Keystone URL",
	"used as it is set up":         "Test failed",
	"What is in the bundle":        "Contents",
	"What would not work":          "Breaks",
	"The whole audit":              "Audit log",
	"Every cluster has an end":     "Require expiry",
	"Grace after the end":          "Grace period",
	"Longest life of":              "Maximum token lifetime",
	"answer that counts":           "valid answer",
	"of the predecessor":           "legacy",
	"his own role":                 "your own role",
	"signed in nowhere":            "No sessions",
	"Workers dealt":                "Assigned",
	"Workers wanted":               "Requested",
	"whose lease runs":             "Live processes",
	"Part and state":               "Component, State",
	"Duties of the schedulers":     "Scheduler jobs",
	"Questions to providers":       "Provider probes",
	"Given up":                     "Discarded",
	"Tried again later":            "Retrying",
	"Not due yet":                  "Scheduled",
	"half of them less than":       "p50",
	"% less than":                  "p95",
	"Carried by":                   "Provided by",
	"faults are struck":            "number of faults",
	"carried out by":               "run by",
}

// text is a piece of what people read, and the line it begins in.
type text struct {
	line int
	text string
}

// TestPlainWords: pages, messages, help and documents are in plain words.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	stiff := phrases(plainer)
	read := 0
	for path, content := range sources(t, ".templ", ".go", ".md") {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		for _, piece := range textsOf(t, name, content) {
			read++
			for _, at := range stiff.FindAllStringIndex(piece.text, -1) {
				phrase := strings.Join(strings.Fields(piece.text[at[0]:at[1]]), " ")
				t.Errorf("%s:%d: “%s”: better %s", name, piece.line+strings.Count(piece.text[:at[0]], "\n"), phrase, better(phrase))
			}
		}
	}
	if read < 5_000 {
		t.Errorf("only %d texts were read", read)
	}
}

// TestPlainWordsFindsPhrases: each source of texts is read, and only the texts in it.
func TestPlainWordsFindsPhrases(t *testing.T) {
	t.Parallel()
	stiff := phrases(plainer)
	for _, test := range []struct {
		path, content string
		lines         []int
	}{
		{"a.go", "package a\n\n// told\nvar told = \"x \" +\n\t\"what \" +\n\t\"was\"\n", []int{4}},
		{"a.go", "package a\n\nimport \"told\"\n\ntype t struct {\n\tA int `json:\"told\" help:\"Not told.\"`\n}\n", []int{6}},
		{"app/store/a.go", "package a\n\nconst q = `SELECT told\n\tFROM a`\n\nvar e = \"nobody was told\"\n", []int{5 + 1}},
		{"a.templ", "package a\n\ntempl a(told string) {\n\t// told\n\t<!-- told -->\n\t<p title=\"Told\">\n\t\tthe file of\n\t\twhich { a.told }\n\t</p>\n}\n", []int{6, 7}},
		{"a.md", "# A\n\nIt stands, for\never; standstill.\n", []int{3, 3}},
	} {
		var lines []int
		for _, piece := range textsOf(t, test.path, test.content) {
			for _, at := range stiff.FindAllStringIndex(piece.text, -1) {
				lines = append(lines, piece.line+strings.Count(piece.text[:at[0]], "\n"))
			}
		}
		if !slices.Equal(lines, test.lines) {
			t.Errorf("phrases were found in lines %v, not %v, of %s:\n%s", lines, test.lines, test.path, test.content)
		}
	}
}

// phrases matches the keys of a map.
func phrases(of map[string]string) *regexp.Regexp {
	var all []string
	for phrase := range of {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(phrase), " ", `\s+`))
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return regexp.MustCompile(`(?i)(?:\b|^)(?:` + strings.Join(all, "|") + `)\b`)
}

func better(phrase string) string {
	for stiff, word := range plainer {
		if strings.EqualFold(stiff, phrase) {
			return "“" + word + "”"
		}
	}
	return ""
}

// textsOf returns what people read of a file.
func textsOf(t *testing.T, path, content string) []text {
	t.Helper()
	switch {
	case strings.HasSuffix(path, ".md"):
		return []text{{1, content}}
	case strings.HasSuffix(path, ".templ"):
		return []text{{1, ofTempl(content)}}
	case strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, "_templ.go"):
		return nil
	}
	return ofGo(t, path, content)
}

var (
	templComment = regexp.MustCompile(`(?s)<!--.*?-->|/\*.*?\*/|(?m:(?:^|\s)//[^\n]*$)`)
	templName    = regexp.MustCompile(`\w*\.\w+|\b\w+(?: :?= | string\b|\()`)
)

// ofTempl blanks comments and Go's names in a page.
func ofTempl(content string) string {
	blank := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, s)
	}
	return templName.ReplaceAllStringFunc(templComment.ReplaceAllStringFunc(content, blank), blank)
}

// readTags are the tags of struct fields that people read.
var readTags = []string{"help", "label", "description", "placeholder"}

var isSQL = regexp.MustCompile(`^\s*(?:--[^\n]*\s+)*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|FROM|JOIN|WHERE|AND|OR|ORDER|LOCK|LISTEN|NOTIFY|SET)\b`)

// ofGo returns the string literals of a file of Go; a sum of them is one.
func ofGo(t *testing.T, path, content string) []text {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []text
	add := func(at token.Pos, s string) {
		if !isSQL.MatchString(s) {
			found = append(found, text{files.Position(at).Line, s})
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			ast.Inspect(n.Type, visit)
			if n.Tag != nil {
				for _, key := range readTags {
					add(n.Tag.Pos(), reflect.StructTag(literal(n.Tag)).Get(key))
				}
			}
			return false
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				s, others := sum(n)
				add(n.Pos(), s)
				for _, other := range others {
					ast.Inspect(other, visit)
				}
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				add(n.Pos(), literal(n))
			}
		}
		return true
	}
	ast.Inspect(file, visit)
	return found
}

// sum is the text of what is added up, with “…” for what is no literal.
func sum(e ast.Expr) (string, []ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return literal(e), nil
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, others := sum(e.X)
			right, more := sum(e.Y)
			return left + right, append(others, more...)
		}
	}
	return "…", []ast.Expr{e}
}

func literal(l *ast.BasicLit) string {
	s, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return s
}
