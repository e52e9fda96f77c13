package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// useCases may be imported by surfaces and by jobs/work; not by each other.
var useCases = []string{"app/account", "app/catalog", "app/clusters", "app/execution", "app/fleet", "app/processes", "app/live", "app/hook"}

// area is what the pages of an area may import; never another area. Their forms make the
// bodies of REST requests, which app/api/wire reads.
var area = append([]string{"app/api/wire", "app/cache", "app/httpx", "app/loom", "views/...", "static", "planner/...", "solver", "app/web/page", "app/web/form"}, useCases...)

// may lists, for each package (its longest matching prefix), what it may import
// of ours; "/..." includes what lies below. Test files and the packages in
// testOnly are exempt. See docs/architecture.md for the picture.
var may = map[string][]string{
	"app":                   {"app/cli"},
	"app/cli":               {"..."},
	"app/lab":               {"..."},
	"app/wiring":            {"..."},
	"app/wiring/devdb":      {},
	"app/config":            {"app/loom"},
	"app/loom":              {},
	"app/archive":           {},
	"app/places":            {"app/loom"},
	"app/diskspace":         {"app/loom"},
	"app/lenient":           {"app/loom"},
	"app/cache":             {},
	"app/failpoint":         {},
	"app/store":             {"app/places", "app/loom", "app/failpoint", "jobs"},
	"app/secret":            {"app/loom"},
	"app/telemetry":         {"app/loom"},
	"app/idp":               {"app/loom"},
	"app/account":           {"app/idp", "app/store", "app/secret", "app/loom", "app/lenient", "jobs", "solver", "planner/..."},
	"app/catalog":           {"app/archive", "app/cache", "app/diskspace", "app/places", "app/store", "app/secret", "app/loom", "app/lenient", "jobs", "solver", "planner/..."},
	"app/clusters":          {"app/places", "app/store", "app/secret", "app/loom", "app/lenient", "jobs", "solver", "planner/..."},
	"app/execution":         {"app/cache", "app/store", "app/secret", "app/loom", "jobs", "solver", "planner/..."},
	"app/processes":         {"app/store", "app/secret", "app/loom", "app/failpoint", "jobs"},
	"app/live":              {"app/store", "app/loom"},
	"app/fleet":             {"app/store", "app/loom"},
	"app/hook":              {"app/store", "app/secret", "app/loom", "app/places"},
	"app/httpx":             {"app/places", "app/loom", "app/account", "app/live", "static"},
	"app/web":               {"app/httpx", "static", "app/web/page", "app/web/clusters", "app/web/catalog", "app/web/admin", "app/web/reports", "app/web/system", "app/web/account", "app/web/docs"},
	"app/web/page":          append([]string{"app/httpx", "app/loom", "views/...", "static", "planner/...", "solver"}, useCases...),
	"app/web/form":          {"app/loom", "views/..."},
	"app/web/clusters":      area,
	"app/web/catalog":       area,
	"app/web/admin":         area,
	"app/web/reports":       area,
	"app/web/system":        area,
	"app/web/account":       area,
	"app/web/docs":          area,
	"app/api":               append([]string{"app/httpx", "app/places", "app/loom", "app/lenient", "app/api/wire", "planner/..."}, useCases...),
	"app/api/wire/schema":   {"app/api/wire", "app/httpx", "app/catalog", "app/loom"},
	"app/api/wire":          append([]string{"app/loom", "app/lenient"}, useCases...),
	"jobs":                  {"app/loom"},
	"jobs/work":             append([]string{"jobs", "app/store", "app/loom", "app/failpoint", "provisioner/...", "planner"}, useCases...),
	"solver":                {"app/loom"},
	"planner":               {"app/loom", "planner/..."},
	"provisioner":           {"app/archive", "app/loom", "provisioner/..."},
	"views":                 append([]string{"app/loom", "static", "views/..."}, useCases...), // their read types
	"views/layout":          {"app/loom", "static", "views/..."},
	"views/route":           {"app/loom"},
	"views/ui":              {"app/loom", "static", "views/..."},
	"static":                {},
	"migrations":            {},
	"seeds":                 {},
	"app/testkit":           {"..."},
	"app/testkit/browser":   {"..."},
	"provisioner/confine":   {},
	"provisioner/resource":  {},
	"provisioner/provider":  {"app/loom", "provisioner/provider/...", "provisioner/plugins", "provisioner/remote", "provisioner/resource"},
	"provisioner/automator": {"app/loom", "provisioner/automator/...", "provisioner/plugins", "provisioner/remote", "provisioner/resource"},
	"provisioner/plugins":   {"app/loom"},
	"provisioner/remote":    {"app/loom", "provisioner/remote/...", "provisioner/resource"},
	"provisioner/external":  {"app/loom", "provisioner/..."},
	"provisioner/simcloud":  {"app/loom"},
	"provisioner/fakecloud": {"provisioner/fakecloud"},

	// It keeps a part of the host's disk free.
	"provisioner/provider/local": {"app/loom", "app/diskspace", "provisioner/provider/...", "provisioner/resource"},

	// It puts providers in front of their fake clouds.
	"provisioner/fakecloud/cloudtest": {"app/loom", "provisioner/..."},

	// Its machines are made from the base roots of local ones.
	"provisioner/automator/docker/enginetest": {"app/loom", "provisioner/..."},

	// The two mocks share the cloud that does not exist.
	"provisioner/provider/mock":  {"app/loom", "provisioner/simcloud"},
	"provisioner/automator/mock": {"app/loom", "provisioner/remote", "provisioner/simcloud"},
}

// testOnly packages are imported by test files only.
var testOnly = []string{"app/api/wire/schema", "app/archive/archivetest", "app/testkit", "app/testkit/glewlwyd", "app/testkit/golden", "app/testkit/idptest", "app/testkit/s3test", "provisioner/remote/sshtest", "provisioner/fakecloud/cloudtest", "provisioner/automator/docker/enginetest", "views/ui/gallery"}

// foreign lists imports from outside that only some packages may have.
var foreign = map[string][]string{
	"github.com/lib/pq":       {"app/store", "migrations", "app/wiring/devdb", "app/testkit"},
	"github.com/jmoiron/sqlx": {"app/store", "migrations", "app/lab", "app/wiring", "app/account", "app/catalog", "app/clusters", "app/execution", "app/fleet", "app/processes", "app/live", "app/hook", "app/testkit", "jobs/work"},
	"github.com/riverqueue":   {"jobs/work", "migrations"},
	"github.com/jackc/pgx":    {"jobs/work", "migrations"},
	"gocloud.dev/blob":        {"app/catalog"},
	"github.com/swaggest":     {"app/api/wire/schema"},
	"github.com/alecthomas":   {"app/cli"},
	"github.com/a-h/templ":    {"views", "app/web", "app/httpx", "app/testkit/golden"},
	"github.com/gorilla":      {"app/httpx", "app/web"},
	"net/http":                {"app/httpx", "app/cli", "app/web", "app/api", "app/lab", "app/wiring", "static", "app/telemetry", "views", "app/testkit", "provisioner", "app/live", "app/hook", "app/idp"},
	"golang.org/x/crypto/ssh": {"provisioner", "app/account", "app/clusters", "app/lab"},
	// One provider per client of a cloud; the catalog bounds the requests of its bucket.
	"github.com/aws":          {"provisioner/provider/aws", "app/catalog", "app/testkit/s3test"},
	"github.com/digitalocean": {"provisioner/provider/digitalocean"},
	"github.com/gophercloud":  {"provisioner/provider/nova", "provisioner/provider/openstack", "provisioner/provider/rackspace"},
	"google.golang.org/api":   {"provisioner/provider/google"},
	"github.com/coreos":       {"app/idp", "app/testkit"},
	"os/exec":                 {"app/lab", "app/wiring", "provisioner", "app/testkit", "static/internal"},
}

// readers get plugin resources, whose content nobody trusts, and read them by package
// resource: they do not open files themselves.
var readers = []string{"provisioner/automator", "provisioner/remote",
	"provisioner/provider/aws", "provisioner/provider/cloud", "provisioner/provider/digitalocean", "provisioner/provider/google", "provisioner/provider/joyent",
	"provisioner/provider/nova", "provisioner/provider/openstack", "provisioner/provider/rackspace", "provisioner/provider/static"}

// openers of readers are exempt: the mock keeps machines that do not exist in a file.
var openers = []string{"provisioner/automator/mock", "provisioner/automator/docker/enginetest", "provisioner/remote/sshtest"}

// pure packages read no clock, file, environment, network or random source.
var pure = []string{"solver", "planner"}

var impure = []string{"os", "net", "math/rand", "crypto/rand", "database/sql", "log/slog", "io/fs"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "loom/")
		rule, ok := longest(name, may)
		if !ok {
			t.Errorf("%s: no rule says what it may import; add one to this test", name)
			continue
		}
		for _, imported := range p.Imports {
			if own, isOurs := strings.CutPrefix(imported, "loom/"); isOurs {
				if slices.Contains(testOnly, own) && !slices.Contains(testOnly, name) {
					t.Errorf("%s imports %s, which is for tests only", name, own)
				}
				if !allowed(own, rule) {
					t.Errorf("%s imports %s, which the architecture does not allow", name, own)
				}
				continue
			}
			for prefix, holders := range foreign {
				if (imported == prefix || strings.HasPrefix(imported, prefix+"/")) && !within(name, holders) {
					t.Errorf("%s imports %s, which only %s may", name, imported, strings.Join(holders, ", "))
				}
			}
			if imported == "os" && within(name, readers) && !within(name, openers) {
				t.Errorf("%s imports os; it reads plugin resources by package resource", name)
			}
			if within(name, pure) && slices.Contains(impure, imported) {
				t.Errorf("%s imports %s but must stay pure", name, imported)
			}
			if name == "app/loom" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("app/loom imports %s; it may use the standard library only", imported)
			}
		}
	}
}

// decides matches what only app/loom/may.go does: to compare a role with another, and what
// was there before it. Whether there is a role at all may be asked.
var decides = regexp.MustCompile(`\b(?:By)?Role(?:User|Admin|Superadmin)?\b\)? *[!=]= *[^ ]|[!=]= *(?:string\()?(?:\w+\.)*(?:By)?Role(?:User|Admin|Superadmin)?\b` +
	`|\bcase (?:string\()?loom\.Role(?:User|Admin|Superadmin)\b|\bswitch [\w.]*[rR]ole\b` +
	`|\b(?:IsAdmin|IsSuperadmin|MaySee|RequireAdmin|RequireSuperadmin|RequireSuperadminTo)\(|\bactor\.(?:Require|Has)\(`)

var isThere = regexp.MustCompile(` [!=]= (?:""|nil)`)

// TestOnePlaceDecides finds comparisons of roles outside app/loom/may.go, in code, pages
// and views: use cases and pages ask Actor.May.
func TestOnePlaceDecides(t *testing.T) {
	t.Parallel()
	files := 0
	for _, root := range []string{".", "../views", "../jobs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_templ.go") || path == "loom/may.go" || path == "loom/provider.go" {
				return err
			}
			if ext := filepath.Ext(path); ext != ".go" && ext != ".templ" {
				return nil
			}
			files++
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if code, _, _ := strings.Cut(line, "// "); decides.MatchString(isThere.ReplaceAllString(code, "")) {
					t.Errorf("%s:%d: %s: who may what is decided in app/loom/may.go", path, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 300 {
		t.Errorf("only %d files", files)
	}
	for _, line := range []string{"if actor.Role == loom.RoleAdmin {", "user.Role != other.Role", "case loom.RoleUser:", "switch actor.Role {", "if loom.RoleAdmin == role {", "u.IsAdmin()", "actor.Has(loom.ScopeRead)"} {
		if !decides.MatchString(line) {
			t.Errorf("%q is not found", line)
		}
	}
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "loom/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list gave only %d packages", len(all))
	}
	return all
}

// longest finds the rule of the longest prefix of name.
func longest(name string, rules map[string][]string) ([]string, bool) {
	for n := name; ; {
		if rule, ok := rules[n]; ok {
			return rule, true
		}
		i := strings.LastIndexByte(n, '/')
		if i < 0 {
			return nil, false
		}
		n = n[:i]
	}
}

func allowed(imported string, rule []string) bool {
	for _, r := range rule {
		if r == "..." || r == imported {
			return true
		}
		if base, deep := strings.CutSuffix(r, "/..."); deep && (imported == base || strings.HasPrefix(imported, base+"/")) {
			return true
		}
	}
	return false
}

func within(name string, holders []string) bool {
	return slices.ContainsFunc(holders, func(h string) bool { return name == h || strings.HasPrefix(name, h+"/") })
}
