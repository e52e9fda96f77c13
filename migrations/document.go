package migrations

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// document is what the migrations and functions/ say of a database in their comments.
type document struct {
	// intro has the paragraphs at the top of the schema.
	intro     string
	tables    []*table
	functions []described
	views     []described
}

type table struct {
	subject, name, comment string
	columns                []column
}

type column struct{ name, kind, comment string }

type described struct{ name, comment string }

var (
	subjectLine  = regexp.MustCompile(`^-- (.+?) -{5,}$`)
	createTable  = regexp.MustCompile(`^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+) \($`)
	alterTable   = regexp.MustCompile(`^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+)\b(.*)$`)
	dropTable    = regexp.MustCompile(`^DROP TABLE (?:IF EXISTS )?(\w+)`)
	columnLine   = regexp.MustCompile(`^ {4}([a-z]\w*)\s+(\w+(?:\[\])?)`)
	addColumn    = regexp.MustCompile(`ADD COLUMN (?:IF NOT EXISTS )?(\w+)\s+(\w+(?:\[\])?)`)
	dropColumn   = regexp.MustCompile(`DROP COLUMN (?:IF EXISTS )?(\w+)`)
	nextSubject  = "Later additions"
	behindColumn = " -- "
)

// read takes one migration in. Statements are written as those that are there: a table's columns
// one a line and indented by four, what an ALTER TABLE adds or drops one a line.
func (d *document) read(text string) {
	var comment []string
	var made, changed *table
	subject, quoted := nextSubject, false
	take := func(line string) string {
		_, behind, _ := strings.Cut(line, behindColumn)
		all := strings.TrimSpace(strings.Join(append(comment, behind), " "))
		comment = nil
		return all
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		own := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(own, "-- +goose"):
			quoted = own == "-- +goose StatementBegin"
			if own == "-- +goose Up" && d.intro == "" {
				d.intro = strings.Join(comment, "\n")
			}
		case quoted && !schemaFunction.MatchString(line):
		case subjectLine.MatchString(line):
			subject, comment = subjectLine.FindStringSubmatch(line)[1], nil
		case strings.HasPrefix(own, "--"):
			comment = append(comment, strings.TrimPrefix(strings.TrimPrefix(own, "--"), " "))
		case own == "":
			if d.intro != "" {
				comment = nil
			}
		case schemaFunction.MatchString(line):
			d.functions = append(d.functions, described{schemaFunction.FindStringSubmatch(line)[1], strings.Join(comment, " ")})
			comment = nil
		case createTable.MatchString(line):
			made = &table{subject: subject, name: createTable.FindStringSubmatch(line)[1], comment: take("")}
			d.tables = append(d.tables, made)
		case made != nil && strings.HasPrefix(line, ")"):
			made = nil
		case made != nil && columnLine.MatchString(line):
			match := columnLine.FindStringSubmatch(line)
			made.columns = append(made.columns, column{match[1], match[2], take(line)})
		case made != nil:
			comment = nil
		case dropTable.MatchString(line):
			d.tables = slices.DeleteFunc(d.tables, func(t *table) bool { return t.name == dropTable.FindStringSubmatch(line)[1] })
		default:
			if match := alterTable.FindStringSubmatch(line); match != nil {
				changed = d.table(match[1])
			}
			if changed != nil {
				if match := addColumn.FindStringSubmatch(line); match != nil {
					changed.columns = append(changed.columns, column{match[1], match[2], take(line)})
				} else if match := dropColumn.FindStringSubmatch(line); match != nil {
					changed.columns = slices.DeleteFunc(changed.columns, func(c column) bool { return c.name == match[1] })
				}
			}
			code, _, _ := strings.Cut(line, behindColumn)
			if comment = nil; strings.HasSuffix(strings.TrimSpace(code), ";") {
				changed = nil
			}
		}
	}
}

func (d *document) table(name string) *table {
	for _, t := range d.tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// describe reads what is embedded here.
func describe() (*document, error) {
	d := &document{}
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d.read(string(text))
	}
	set, err := definitions()
	if err != nil {
		return nil, err
	}
	for _, def := range set {
		if item := (described{def.name, firstComment(def.text)}); def.isView() {
			d.views = append(d.views, item)
		} else {
			d.functions = append(d.functions, item)
		}
	}
	slices.SortFunc(d.functions, func(a, b described) int { return strings.Compare(a.name, b.name) })
	return d, nil
}

// firstComment is the comment that a file begins with, its paragraphs in one line.
func firstComment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "--")
		if !ok {
			break
		}
		words = append(words, strings.Fields(rest)...)
	}
	return strings.Join(words, " ")
}

var inCell = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;")

// Markdown is docs/schema.md: what the comments of the schema and of the functions say.
func Markdown() (string, error) {
	d, err := describe()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# The database\n\nMade by `make generate` from the comments in `migrations/`.\n\n")
	b.WriteString(d.intro + "\n")
	subject := ""
	for _, t := range d.tables {
		if t.subject != subject {
			subject = t.subject
			fmt.Fprintf(&b, "\n## %s\n", subject)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| column | type | |\n|---|---|---|\n", t.name, inCell.Replace(t.comment))
		for _, c := range t.columns {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", c.name, c.kind, inCell.Replace(c.comment))
		}
	}
	for _, part := range []struct {
		title string
		items []described
	}{{"Views", d.views}, {"Functions", d.functions}} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		for _, item := range part.items {
			about := inCell.Replace(strings.TrimPrefix(item.comment, item.name+" "))
			fmt.Fprintf(&b, "- `%s` %s\n", item.name, about)
		}
	}
	return b.String(), nil
}
