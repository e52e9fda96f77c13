package loom

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServiceCheck says how to find out whether a service works on a node. Exactly one of
// Command, HTTP and TCP is set. Zero numbers stand for the defaults, which WithDefaults
// fills in.
type ServiceCheck struct {
	// Command runs as root where the start action runs; exit status 0 passes.
	Command string     `json:"command,omitempty" label:"Command" help:"Runs as root on the node, where the start action runs. Exit status 0 passes; the first line of output is shown when it fails."`
	HTTP    *HTTPCheck `json:"http,omitempty"`
	TCP     *TCPCheck  `json:"tcp,omitempty"`
	// Interval and Timeout are in seconds.
	Interval int `json:"interval,omitempty" label:"Interval" help:"Seconds between two checks, 15 to 3600; 60 if empty."`
	Timeout  int `json:"timeout,omitempty" label:"Timeout" help:"Seconds that a check may take, 1 to 30; 5 if empty."`
	// Failures and Passes in a row change the status.
	Failures int `json:"failures,omitempty" label:"Failures" help:"Failed checks in a row until the service is failing. Default: 3."`
	Passes   int `json:"passes,omitempty" label:"Passes" help:"Passed checks in a row until it is passing again. Default: 2."`
	// Grace is in seconds.
	Grace int `json:"grace,omitempty" label:"Grace" help:"Seconds after a start in which a failed check does not count; 60 if empty."`
}

// HTTPCheck passes when a URL of the node answers with one of the statuses and, if
// Contains is set, with that text in the first 64 KB of its body.
type HTTPCheck struct {
	URL string `json:"url" required:"true" label:"URL" help:"On the node itself: its host is a macro such as %ip.access_v4.self%."`
	// Status is one status or a range, such as "200-399", its default.
	Status   string `json:"status,omitempty" label:"Status" help:"One status or a range; 200-399 if empty."`
	Contains string `json:"contains,omitempty" label:"Contains" help:"A text that the response must contain."`
}

// TCPCheck passes when a port of the node accepts a connection.
type TCPCheck struct {
	Port int `json:"port" required:"true" label:"Port"`
}

// ServiceLogs names what the journal of a service shows.
type ServiceLogs struct {
	Units []string `json:"units,omitempty" label:"Units" help:"systemd units, such as nginx."`
	Files []string `json:"files,omitempty" label:"Files" help:"Absolute paths on the node."`
}

// Bounds of checks.
const (
	MaxCheckCommand = 1000 // characters
	MaxWatchedFiles = 20   // files of a service whose changes are noticed, and files of its logs
	MaxCheckText    = 1000 // characters of a URL and of a text that a response contains
	MaxCheckRow     = 20   // results in a row that change a status
	MaxCheckGrace   = 3600 // seconds
)

// WithDefaults returns the check with its defaults in place of zeros.
func (c ServiceCheck) WithDefaults() ServiceCheck {
	fill := func(value *int, otherwise int) {
		if *value == 0 {
			*value = otherwise
		}
	}
	fill(&c.Interval, 60)
	fill(&c.Timeout, 5)
	fill(&c.Failures, 3)
	fill(&c.Passes, 2)
	fill(&c.Grace, 60)
	return c
}

// Period returns the time between two checks: the interval, or what is left of it after a
// failure, so that a second opinion does not take a whole interval.
func (c ServiceCheck) Period(failed bool) time.Duration {
	period := time.Duration(c.WithDefaults().Interval) * time.Second
	if failed {
		return min(period, 15*time.Second)
	}
	return period
}

// selfMacro is the host of a URL that stands for the node itself.
var selfMacro = regexp.MustCompile(`^%(ip\.[a-z0-9_]+|host)\.self%(:[0-9]{1,5}|:%[^%/]+%)?$`)

// unitName is what a systemd unit may be called.
var unitName = regexp.MustCompile(`^[A-Za-z0-9@._][A-Za-z0-9@._-]*$`)

// Validate returns the errors of a check, named below a field.
func (c *ServiceCheck) Validate(field string) []FieldError {
	var errs []FieldError
	bad := func(at, format string, args ...any) {
		errs = append(errs, FieldError{field + at, fmt.Sprintf(format, args...)})
	}
	kinds := 0
	if c.Command != "" {
		kinds++
		if len([]rune(c.Command)) > MaxCheckCommand {
			bad(".command", "At most %d characters. Put longer commands into a script.", MaxCheckCommand)
		}
		if strings.ContainsAny(c.Command, "\x00\n\r") {
			bad(".command", "One line only. Put more into a script.")
		}
	}
	if c.HTTP != nil {
		kinds++
		errs = append(errs, c.HTTP.validate(field+".http")...)
	}
	if c.TCP != nil {
		kinds++
		if c.TCP.Port < 1 || c.TCP.Port > 65535 {
			bad(".tcp.port", "A port is a number from 1 to 65535.")
		}
	}
	if kinds != 1 {
		bad("", "Set exactly one of command, http and tcp.")
	}
	within := func(at string, value, least, most int) {
		if value != 0 && (value < least || value > most) {
			bad(at, "A number from %d to %d.", least, most)
		}
	}
	within(".interval", c.Interval, 15, 3600)
	within(".timeout", c.Timeout, 1, 30)
	within(".failures", c.Failures, 1, MaxCheckRow)
	within(".passes", c.Passes, 1, MaxCheckRow)
	within(".grace", c.Grace, 1, MaxCheckGrace)
	return errs
}

func (h *HTTPCheck) validate(field string) []FieldError {
	var errs []FieldError
	scheme, rest, _ := strings.Cut(h.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case scheme != "http" && scheme != "https":
		errs = append(errs, FieldError{field + ".url", "The URL begins with http:// or https://."})
	case !selfMacro.MatchString(host):
		errs = append(errs, FieldError{field + ".url", "The host of the URL is the node itself: write %ip.access_v4.self%."})
	case len([]rune(h.URL)) > MaxCheckText:
		errs = append(errs, FieldError{field + ".url", fmt.Sprintf("At most %d characters.", MaxCheckText)})
	case strings.ContainsFunc(h.URL, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		errs = append(errs, FieldError{field + ".url", "A URL has no spaces and no control characters; write %20 for a space."})
	}
	if _, _, err := h.Statuses(); err != nil {
		errs = append(errs, FieldError{field + ".status", "One status or a range, such as 200 or 200-399."})
	}
	if len([]rune(h.Contains)) > MaxCheckText {
		errs = append(errs, FieldError{field + ".contains", fmt.Sprintf("At most %d characters.", MaxCheckText)})
	}
	return errs
}

// Statuses returns the first and the last HTTP status that pass.
func (h *HTTPCheck) Statuses() (first, last int, err error) {
	text := h.Status
	if text == "" {
		text = "200-399"
	}
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	if first, err = strconv.Atoi(from); err != nil {
		return 0, 0, err
	}
	if last, err = strconv.Atoi(to); err != nil {
		return 0, 0, err
	}
	if first < 100 || last > 599 || first > last {
		return 0, 0, fmt.Errorf("%d to %d is no range of HTTP statuses", first, last)
	}
	return first, last, nil
}

// Validate returns the errors of the logs of a service, named below a field.
func (l *ServiceLogs) Validate(field string) []FieldError {
	errs := checkFilePaths(field+".files", l.Files)
	errs = append(errs, checkCount(field+".units", l.Units, MaxWatchedFiles)...)
	for i, unit := range l.Units {
		if !unitName.MatchString(unit) {
			errs = append(errs, FieldError{fmt.Sprintf("%s.units[%d]", field, i), "The name of a systemd unit, such as nginx or nginx.service."})
		}
	}
	return errs
}

// checkFilePaths returns an error for each path that is not absolute and clean, and one if
// there are too many.
func checkFilePaths(field string, paths []string) []FieldError {
	errs := checkCount(field, paths, MaxWatchedFiles)
	for i, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("*?[]", r) }) {
			errs = append(errs, FieldError{fmt.Sprintf("%s[%d]", field, i), "An absolute path without patterns, such as /etc/nginx/nginx.conf."})
		}
	}
	return errs
}

// CheckOf returns the check of a service: its own; else, for a service in a container, that
// the container runs (container is true); else that its first HTTP link to the node itself
// responds with a status below 500. nil and false: the service is not checked.
func (s *Service) CheckOf() (check *ServiceCheck, container bool) {
	if s.Check != nil {
		return s.Check, false
	}
	if start, ok := s.Provisioner.Actions[ActionStart]; ok && start.Type == "docker" {
		return nil, true
	}
	at := slices.IndexFunc(s.Links, func(l Link) bool {
		u := &HTTPCheck{URL: l.URL}
		return len(u.validate("")) == 0
	})
	if at < 0 {
		return nil, false
	}
	return &ServiceCheck{HTTP: &HTTPCheck{URL: s.Links[at].URL, Status: "100-499"}}, false
}

// Unchecked reports whether the service does something on nodes and nobody would notice that it
// does not work.
func (s *Service) Unchecked() bool {
	check, container := s.CheckOf()
	return check == nil && !container && len(s.Provisioner.Actions) > 0
}
