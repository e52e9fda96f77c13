package layout_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forbidden is what the content security policy or the way to htmx 4 rules out.
var forbidden = map[string]*regexp.Regexp{
	"a style attribute":       regexp.MustCompile(`\bstyle=`),
	"a style element":         regexp.MustCompile(`<style`),
	"an event attribute":      regexp.MustCompile(`[\s"]on[a-z]+=`),
	"hx-on":                   regexp.MustCompile(`hx-on`),
	"evaluated htmx text":     regexp.MustCompile(`\bjs:|javascript:|hx-vars|hx-params|hx-prompt|hx-disable\b`),
	"unescaped markup":        regexp.MustCompile(`templ\.Raw`),
	"a morph with parameters": regexp.MustCompile(`morph:\{`),
}

// templates calls visit with every .templ file of the views.
func templates(t *testing.T, visit func(path, text string)) {
	t.Helper()
	count := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".templ") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		visit(path, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 5 {
		t.Fatalf("only %d templates were found", count)
	}
}

func TestTemplatesKeepToThePolicy(t *testing.T) {
	t.Parallel()
	templates(t, func(path, text string) {
		for what, pattern := range forbidden {
			if found := pattern.FindString(text); found != "" {
				t.Errorf("%s contains %s: %q", path, what, found)
			}
		}
	})
}

// A class without a rule is a typing error, or a rule that was renamed.
func TestClassesHaveRules(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("../../static/css/loom.css")
	if err != nil {
		t.Fatal(err)
	}
	class := regexp.MustCompile(`\b[clu]-[a-z][a-z-]*[a-z]`)
	attribute := regexp.MustCompile(`class=(?:"[^"]*"|\{[^}]*\})`)
	known := map[string]bool{}
	for _, name := range regexp.MustCompile(`\.([clu]-[a-z-]+)`).FindAllStringSubmatch(string(css), -1) {
		known[name[1]] = true
	}
	templates(t, func(path, text string) {
		for _, value := range attribute.FindAllString(text, -1) {
			for _, name := range class.FindAllString(value, -1) {
				if !known[name] {
					t.Errorf("%s uses %s, which the stylesheet does not know", path, name)
				}
			}
		}
	})
}

// An icon that the sprite lacks would be an empty square.
func TestIconsExist(t *testing.T) {
	t.Parallel()
	sprite, err := os.ReadFile("../../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	use := regexp.MustCompile(`\bIcon(?:\(|: *)"([a-z-]+)"`)
	seen := 0
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_templ.go") || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".templ") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			seen++
			if !strings.Contains(string(sprite), `id="`+m[1]+`"`) {
				t.Errorf("%s uses the icon %q, which the sprite lacks", path, m[1])
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d icons seen: %v", seen, err)
	}
}
