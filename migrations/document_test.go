package migrations_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/testkit"
	"loom/migrations"
)

var documented = regexp.MustCompile("^(?:### (\\w+)|\\| `(\\w+)` \\| `(.+?)` \\||- `(\\w+)` (.*))")

// docs/schema.md has every table with a comment, every column with its type, every function and
// view, and nothing else.
func TestDocumentIsTheSchema(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	text, err := migrations.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile("../docs/schema.md"); err != nil || string(file) != text {
		t.Errorf("docs/schema.md is stale, `make generate` makes it (%v)", err)
	}
	got, table := map[string]string{}, ""
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch match := documented.FindStringSubmatch(line); {
		case match == nil:
		case match[1] != "":
			if table = match[1]; lines[i+2] == "" {
				t.Errorf("table %s has no comment", table)
			}
		case match[2] != "":
			got[table+"."+match[2]] = match[3]
		default:
			if got[match[4]] = "made"; match[5] == "" {
				t.Errorf("%s has no comment", match[4])
			}
		}
	}
	var rows []struct{ Name, Type string }
	if err := db.Select(&rows, `
SELECT c.relname || '.' || a.attname AS name, format_type(a.atttypid, NULL) AS type
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname NOT LIKE 'river\_%' AND c.relname <> 'goose_db_version'
UNION SELECT proname, 'made' FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'loom\_%'
UNION SELECT viewname, 'made' FROM pg_views WHERE schemaname = 'public'`); err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer("integer", "int", "timestamp with time zone", "timestamptz")
	want := map[string]string{}
	for _, r := range rows {
		want[r.Name] = short.Replace(r.Type)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %q in the document, %q in the database", name, got[name], want[name])
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is in the document only", name)
	}
}
