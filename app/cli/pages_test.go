//go:build e2e && browser

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/testkit/browser"
	"loom/app/web"
	"loom/views/adminview"
)

// picturesDir is where TestEveryPage leaves pictures of all pages; `make
// screenshots` sets it.
const picturesDir = "LOOM_SCREENSHOTS"

// maxTransfer is how many bytes a page and what it loads may take, compressed.
const maxTransfer = 150_000

// pagesWanted, when set, is a regular expression: TestEveryPage opens only the
// addresses it matches.
const pagesWanted = "LOOM_PAGES"

// parts are no pages of their own: pieces, downloads and streams; and questions about
// what need not be there: a sweep takes orphans away that no provider knows.
var parts = regexp.MustCompile(`^(/events|/favicon\.ico|/home/.*|/palette|.*/panel|.*/rows|.*\.svg|.*/log/raw|.*/ssh-config|.*/graph|.*/log|.*/reveal|.*/pause|.*/resume|.*/resubmit|.*/retry-now|.*/stop-retrying|.*/protect|.*/key|.*/authorize|/previews/\{preview\}/apply|.*/abandon|/system/orphans/.*|.*/export|.*/copy)$`)

// leads are addresses that lead to others: those of lists that stand elsewhere, and a
// preview that was not made yet.
var leads = regexp.MustCompile(`^(/admin/clusters|/admin/transfer/preview|/system/hooks|/system/tenants/[^/]+/edit|/admin/hooks/[0-9]+/deliveries)$`)

// alike are pages that look the same for each kind of the catalog: those of services
// and templates stand for them, except in pictures.
var alike = regexp.MustCompile(`^/admin/(hardware-types|image-types|partials|providers)/\{name\}/(activity|compare|uses|versions|versions/\{version\}|delete|json)$`)

// samples gives the addresses to look at for a pattern: the plain one with its
// parameters filled, and others where one is not enough.
func (w *pagesWorld) samples(pattern string) []string {
	fill := func(pattern string, over map[string]string) string {
		return regexp.MustCompile(`\{[a-z$]+\}`).ReplaceAllStringFunc(pattern, func(name string) string {
			if name == "{$}" {
				return ""
			}
			value, there := over[name]
			if !there {
				value = w.names[name]
			}
			if value == "" {
				w.t.Errorf("%s: nothing stands for %s", pattern, name)
			}
			return value
		})
	}
	kinds := map[string]string{"hardware-types": "mock", "image-types": "mock", "providers": "mock", "services": "front", "templates": "shop", "partials": "lease"}
	over := map[string]string{}
	switch part := strings.Split(strings.Trim(pattern, "/"), "/"); {
	case strings.HasSuffix(pattern, "/edit/{tab}"):
		var paths []string
		for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes", "try"} {
			paths = append(paths, "/admin/templates/shop/edit/"+tab)
		}
		return paths
	case pattern == "/admin/providers/{name}/use":
		return []string{"/admin/providers/mock/use?flavor=small"}
	case len(part) > 1 && part[0] == "admin" && kinds[part[1]] != "":
		over["{name}"] = kinds[part[1]]
	case strings.HasPrefix(pattern, "/admin/hooks/"):
		over["{id}"] = w.names["hook"]
	case strings.HasPrefix(pattern, "/admin/resources/") && !strings.HasSuffix(pattern, "/sync"):
		version := "2"
		if strings.HasSuffix(pattern, "/recall") || strings.HasSuffix(pattern, "/show") {
			version = "1"
		}
		return []string{adminview.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "hello.sh", Version: version}.Query(pattern)}
	case pattern == "/admin/users/{id}/{verb}":
		return []string{"/admin/users/user/disable", "/admin/users/user/password"}
	case strings.HasPrefix(pattern, "/admin/users/"):
		over["{id}"] = "user"
	case strings.HasPrefix(pattern, "/account/tokens/"):
		over["{id}"] = w.names["own token"]
	case strings.HasPrefix(pattern, "/system/workers/"):
		return []string{"/system/workers/" + w.names["worker"] + "/drain"}
	case pattern == "/system/queues/{queue}/{verb}":
		return []string{"/system/queues/hook/pause"}
	case strings.HasPrefix(pattern, "/system/queues/jobs/"):
		over["{id}"], over["{verb}"] = w.names["job"], "retry"
	case strings.HasPrefix(pattern, "/system/plugins/"):
		over["{kind}"], over["{name}"] = "providertypes", "mock"
	case strings.HasPrefix(pattern, "/clusters/bulk/"):
		return []string{pattern + "?id=" + w.names["failed"] + "&id=" + w.names["{cluster}"]}
	case strings.HasPrefix(pattern, "/system/orphans/"):
		over["{id}"] = w.names["orphan"]
	case strings.HasSuffix(pattern, "/abandon"), strings.HasSuffix(pattern, "/retry"):
		over["{cluster}"] = w.names["failed"]
	case strings.HasSuffix(pattern, "/skip"):
		over["{cluster}"], over["{task}"] = w.names["paused"], w.names["ready"]
	case strings.HasSuffix(pattern, "/abort"), strings.HasSuffix(pattern, "/pause"), strings.HasSuffix(pattern, "/resume"):
		over["{cluster}"] = w.names["paused"]
	}
	paths := []string{fill(pattern, over)}
	switch pattern {
	case "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}":
		for _, state := range []string{"paused", "failed", "gone"} {
			paths = append(paths, fill(pattern, map[string]string{"{cluster}": w.names[state]}))
		}
	case "/clusters/new":
		paths = append(paths, "/clusters/new?template=shop")
	}
	return paths
}

// TestEveryPage opens each page there is, light and wide, dark and narrow: it
// answers, has a title and a heading, is light enough, does not grow wider than
// the window, and axe and the browser have nothing against it.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	w := newPagesWorld(t)
	pictures := os.Getenv(picturesDir)
	wanted := regexp.MustCompile(os.Getenv(pagesWanted))
	patterns := web.Patterns()
	slices.Sort(patterns)
	lanes := [2][]string{}
	for _, pattern := range patterns {
		path, isGet := strings.CutPrefix(pattern, "GET ")
		if !isGet || parts.MatchString(path) || pictures == "" && alike.MatchString(path) {
			continue
		}
		if strings.HasPrefix(path, "/system") {
			lanes[1] = append(lanes[1], w.samples(path)...)
		} else {
			lanes[0] = append(lanes[0], w.samples(path)...)
		}
	}
	for i, who := range []string{"demo", "superadmin"} {
		j := &journey{world: w.world, b: browser.New(t, browser.Options{}), scripts: true}
		j.hands = j.b.Keyboard()
		j.b.Open(j.url + "/login?tenant=" + who)
		j.hands.Fill("the user name", "input[name=user]", "admin")
		j.hands.Fill("the password", "input[name=password]", j.password(who, "admin"))
		j.hands.Activate("sign in", "form[action='/login'] button[type=submit]")
		j.at("the home page", `^/$`)
		for _, path := range lanes[i] {
			if !wanted.MatchString(path) {
				continue
			}
			j.inspect(path, pictures)
		}
		j.quiet()
	}
}

// inspect looks at one page in both colours and widths.
func (j *journey) inspect(path, pictures string) {
	j.t.Helper()
	j.b.Size(1280)
	j.b.Dark(false)
	j.b.Open(j.url + path)
	if at := strings.TrimPrefix(j.b.URL(), j.url); at != path && !strings.HasPrefix(path, "/login") && !strings.HasPrefix(path, "/docs/") && !leads.MatchString(path) {
		j.t.Errorf("%s leads to %s", path, at)
	}
	p := j.b.Page()
	if p.Status != 200 {
		j.t.Errorf("%s: status %d: %.300s", path, p.Status, j.b.Text())
		return
	}
	if p.Heading != 1 || !strings.HasSuffix(p.Title, "Loom") {
		j.t.Errorf("%s: %d headings, title %q", path, p.Heading, p.Title)
	}
	if p.Bytes > maxTransfer {
		j.t.Errorf("%s: %d bytes, more than %d", path, p.Bytes, maxTransfer)
	}
	look := func(colour string, width int, rules ...string) {
		for _, fault := range j.b.Faults(rules...) {
			j.t.Errorf("%s, %s, %d: %s", path, colour, width, fault)
		}
		if wide := j.b.Page().Overflow; wide > 0 {
			j.t.Errorf("%s, %s, %d: the page is %d pixels wider than the window", path, colour, width, wide)
		}
	}
	take := func(colour string, width int) {
		if pictures != "" {
			name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "_")
			j.b.Picture(filepath.Join(pictures, fmt.Sprintf("%s-%s-%d.png", name, colour, width)))
		}
	}
	look("light", 1280)
	take("light", 1280)
	j.b.Dark(true)
	take("dark", 1280)
	j.b.Size(320)
	look("dark", 320, "color-contrast", "scrollable-region-focusable") // what colours and width can change
	take("dark", 320)
	if pictures != "" {
		j.b.Dark(false)
		take("light", 320)
	}
}
