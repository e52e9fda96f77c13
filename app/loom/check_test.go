package loom

import (
	"slices"
	"strings"
	"testing"
)

func TestServiceCheckValidate(t *testing.T) {
	t.Parallel()
	http := func(url string) *ServiceCheck { return &ServiceCheck{HTTP: &HTTPCheck{URL: url}} }
	for name, c := range map[string]struct {
		check *ServiceCheck
		want  []string // fields
	}{
		"command":             {&ServiceCheck{Command: "nginx.sh check"}, nil},
		"http":                {http("http://%ip.access_v4.self%:8080/health?full=1"), nil},
		"https by name":       {http("https://%host.self%/"), nil},
		"port from a config":  {http("http://%ip.bind_v4.self%:%cluster.config.web.port%/"), nil},
		"tcp":                 {&ServiceCheck{TCP: &TCPCheck{Port: 6379}}, nil},
		"nothing":             {&ServiceCheck{}, []string{"check"}},
		"two kinds":           {&ServiceCheck{Command: "true", TCP: &TCPCheck{Port: 1}}, []string{"check"}},
		"long command":        {&ServiceCheck{Command: strings.Repeat("x", MaxCheckCommand+1)}, []string{"check.command"}},
		"two lines":           {&ServiceCheck{Command: "a\nb"}, []string{"check.command"}},
		"port 0":              {&ServiceCheck{TCP: &TCPCheck{}}, []string{"check.tcp.port"}},
		"another host":        {http("http://example.com/"), []string{"check.http.url"}},
		"host as a user":      {http("http://%host.self%@example.com/"), []string{"check.http.url"}},
		"another node":        {http("http://%host.service.db%/"), []string{"check.http.url"}},
		"metadata":            {http("http://169.254.169.254/"), []string{"check.http.url"}},
		"another scheme":      {http("file:///etc/passwd"), []string{"check.http.url"}},
		"a space":             {http("http://%host.self%/a b"), []string{"check.http.url"}},
		"no range":            {&ServiceCheck{HTTP: &HTTPCheck{URL: "http://%host.self%/", Status: "2xx"}}, []string{"check.http.status"}},
		"range upside down":   {&ServiceCheck{HTTP: &HTTPCheck{URL: "http://%host.self%/", Status: "399-200"}}, []string{"check.http.status"}},
		"numbers out of them": {&ServiceCheck{Command: "true", Interval: 14, Timeout: 31, Failures: -1, Passes: 21, Grace: 3601}, []string{"check.interval", "check.timeout", "check.failures", "check.passes", "check.grace"}},
	} {
		var got []string
		for _, e := range c.check.Validate("check") {
			got = append(got, e.Field)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: errors at %v, want %v", name, got, c.want)
		}
	}
}

func TestWatchedFilesValidate(t *testing.T) {
	t.Parallel()
	for path, fine := range map[string]bool{
		"/etc/nginx/nginx.conf": true, "/etc/with space": true,
		"etc/passwd": false, "/": false, "/etc/../root/x": false, "/etc/": false, "/etc/*.conf": false, "/etc/a\nb": false, "": false,
	} {
		s := Service{Files: []string{path}, Logs: &ServiceLogs{Files: []string{path}}}
		var got []string
		for _, e := range s.Validate() {
			if e.Field == "files[0]" || e.Field == "logs.files[0]" {
				got = append(got, e.Field)
			}
		}
		if fine != (len(got) == 0) || !fine && len(got) != 2 {
			t.Errorf("%q: errors at %v", path, got)
		}
	}
	for unit, fine := range map[string]bool{"nginx": true, "a@b.service": true, "-f": false, "a b": false, "": false, "a;b": false} {
		if errs := (&ServiceLogs{Units: []string{unit}}).Validate("logs"); fine != (len(errs) == 0) {
			t.Errorf("unit %q: %v", unit, errs)
		}
	}
}

func TestCheckOf(t *testing.T) {
	t.Parallel()
	start := func(automator string) ServiceProvisioner {
		return ServiceProvisioner{Actions: map[TaskAction]ServiceAction{ActionStart: {Type: automator}}}
	}
	own := &ServiceCheck{Command: "true"}
	for name, c := range map[string]struct {
		service   Service
		url       string
		container bool
	}{
		"its own":          {Service{Check: own, Provisioner: start("docker")}, "", false},
		"a container":      {Service{Provisioner: start("docker"), Links: []Link{{URL: "http://%host.self%/"}}}, "", true},
		"a link to itself": {Service{Provisioner: start("shell"), Links: []Link{{URL: "redis://%host.self%"}, {URL: "http://%ip.access_v4.self%/"}}}, "http://%ip.access_v4.self%/", false},
		"links to others":  {Service{Links: []Link{{URL: "http://%host.service.db%/"}}}, "", false},
		"nothing says how": {Service{}, "", false},
	} {
		check, container := c.service.CheckOf()
		var url string
		if check != nil && check.HTTP != nil {
			url = check.HTTP.URL
		}
		if url != c.url || container != c.container || c.service.Check != nil && check != own {
			t.Errorf("%s: %+v, in a container: %t", name, check, container)
		}
	}
}
