//go:build e2e && browser

package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"loom/app/testkit/browser"
	"loom/app/web"
)

// picturesDir is where TestEveryPage leaves pictures of all pages; `make
// screenshots` sets it.
const picturesDir = "LOOM_SCREENSHOTS"

// maxTransfer is how many bytes a page and what it loads may take, compressed.
const maxTransfer = 150_000

// pagesWanted, when set, is a regular expression: TestEveryPage opens only the
// addresses it matches.
const pagesWanted = "LOOM_PAGES"

// leads are addresses that lead to others: those of lists that stand elsewhere, and a
// preview that was not made yet.
var leads = regexp.MustCompile(`^(/admin/clusters|/admin/transfer/preview|/admin/hooks/[0-9]+/deliveries)$`)

// alike are pages that look the same for each kind of the catalog: those of services
// and templates stand for them, except in pictures.
var alike = regexp.MustCompile(`^/admin/(hardware-types|image-types|partials|providers)/\{name\}/(activity|compare|uses|versions|versions/\{version\}|delete|json)$`)

// placeholders of samples are names of this world.
var placeholders = regexp.MustCompile(`\{[a-z ]+\}`)

// samples returns the addresses to look at for a route.
func (w *pagesWorld) samples(rt web.Route) []string {
	entries := map[string]string{"hardwaretypes": "mock", "imagetypes": "mock", "providers": "mock", "services": "front", "clustertemplates": "shop", "partialtemplates": "lease"}
	var paths []string
	for _, sample := range rt.Samples {
		paths = append(paths, placeholders.ReplaceAllStringFunc(sample, func(found string) string {
			bare := strings.Trim(found, "{}")
			value := cmp.Or(w.names[found], w.names[bare], entries[bare])
			if value == "" {
				w.t.Errorf("%s: nothing stands for %s", rt.Pattern(), found)
			}
			return value
		}))
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
	lanes := [2][]string{}
	for _, rt := range web.Routes() {
		if rt.Method != http.MethodGet || rt.Piece || pictures == "" && alike.MatchString(rt.Path) {
			continue
		}
		if strings.HasPrefix(rt.Path, "/system") {
			lanes[1] = append(lanes[1], w.samples(rt)...)
		} else {
			lanes[0] = append(lanes[0], w.samples(rt)...)
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
