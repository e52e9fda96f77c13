package local

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// debianKeyring is the only key ring the sources of a base root may name: it is
// in every Debian root. Other sources of the host are not Debian's.
const debianKeyring = "/usr/share/keyrings/debian-archive-"

// hostSources gives, as lines of a sources.list, what the host itself installs
// from, when it is a Debian of that suite; so a host with a near or an internal
// mirror has machines that use it as well. Nil means: the usual mirror.
func hostSources(osRelease, aptDir, suite string) []string {
	release, err := os.ReadFile(osRelease)
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for _, line := range strings.Split(string(release), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	if values["ID"] != "debian" || values["VERSION_CODENAME"] != suite {
		return nil
	}
	var lines []string
	names, _ := filepath.Glob(filepath.Join(aptDir, "sources.list.d", "*.list"))
	for _, name := range append([]string{filepath.Join(aptDir, "sources.list")}, names...) {
		if text, err := os.ReadFile(name); err == nil {
			lines = append(lines, listSources(string(text), suite)...)
		}
	}
	names, _ = filepath.Glob(filepath.Join(aptDir, "sources.list.d", "*.sources"))
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil {
			lines = append(lines, deb822Sources(string(text), suite)...)
		}
	}
	// Without the suite itself the rest cannot make a root.
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, " "+suite+" ") }) {
		return nil
	}
	return slices.Compact(lines)
}

// listSources reads the one-line form: deb [options] URI suite component...
func listSources(text, suite string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		signedBy := ""
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			var options string
			options, rest, _ = strings.Cut(rest[1:], "]")
			for _, option := range strings.Fields(options) {
				if value, ok := strings.CutPrefix(option, "signed-by="); ok {
					signedBy = value
				}
			}
		}
		if f := strings.Fields(rest); len(f) >= 3 {
			lines = append(lines, sourceLine(f[0], f[1], f[2:], signedBy, suite)...)
		}
	}
	return lines
}

// deb822Sources reads stanzas of "Field: value" lines (sources.list(5)).
func deb822Sources(text, suite string) []string {
	var lines []string
	stanza := map[string]string{}
	flush := func() {
		if slices.Contains(strings.Fields(stanza["types"]), "deb") && !strings.EqualFold(stanza["enabled"], "no") {
			for _, uri := range strings.Fields(stanza["uris"]) {
				for _, s := range strings.Fields(stanza["suites"]) {
					lines = append(lines, sourceLine(uri, s, strings.Fields(stanza["components"]), stanza["signed-by"], suite)...)
				}
			}
		}
		stanza = map[string]string{}
	}
	last := ""
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			stanza[last] += " " + strings.TrimSpace(line)
		default:
			key, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(key))
			stanza[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return lines
}

// sourceLine returns the line for one source if it is Debian's own archive, for
// this suite or its updates, over the network. Directories of the host and
// sources of others (signed by others) are of no use inside a machine.
func sourceLine(uri, name string, components []string, signedBy, suite string) []string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !slices.Contains(components, "main") {
		return nil
	}
	if name != suite && name != suite+"-updates" && name != suite+"-security" {
		return nil
	}
	option := ""
	if signedBy != "" {
		if !strings.HasPrefix(signedBy, debianKeyring) || strings.ContainsAny(signedBy, " ,") {
			return nil
		}
		option = fmt.Sprintf("[signed-by=%s] ", signedBy)
	}
	return []string{fmt.Sprintf("deb %s%s %s %s", option, uri, name, strings.Join(components, " "))}
}

// hostAptOptions passes the host's proxy settings on, to the build and to the
// machines; none when the host has no apt.
func hostAptOptions(ctx context.Context) []string {
	out, err := command(ctx, "apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`, "Acquire").Output()
	if err != nil {
		return nil
	}
	return proxyOptions(string(out))
}

func proxyOptions(dump string) []string {
	var options []string
	for _, line := range strings.Split(dump, "\n") {
		key, _, _ := strings.Cut(line, " ")
		switch strings.ToLower(key) {
		case "acquire::http::proxy", "acquire::https::proxy":
			options = append(options, line)
		}
	}
	return options
}
