package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/provider/cloud"
)

var plainType = loom.PluginType{Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
	"api_password": {Type: "password", Sensitive: true}, "endpoint_url": {Type: "text"},
}}}}

// status is an answer of a cloud.
type status struct {
	code  int
	after string
}

func (s status) Error() string { return "it says hunter22-secret" }

func classify(err error) *cloud.Error {
	var s status
	if !errors.As(err, &s) {
		return cloud.FromNetwork(err)
	}
	return cloud.FromHTTP(s.code, http.Header{"Retry-After": {s.after}}, s.Error(), err)
}

func begin(clock *cloudtest.Clock, sink loom.Sink) *cloud.Session {
	return cloud.Options{Pace: cloud.Pace{Sleep: clock.Sleep}}.Begin(plainType, &loom.TaskSpec{Provider: loom.Provider{Fields: map[string]any{"api_password": "hunter22-secret"}}, Reach: loom.Anywhere()}, sink, classify)
}

func total(waits []time.Duration) (sum time.Duration) {
	for _, w := range waits {
		sum += w
	}
	return sum
}

func TestCallWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []error
		calls   int
		kind    cloud.Kind
		least   time.Duration
	}{
		{"throttled", []error{status{429, "40"}, status{429, ""}, nil}, 3, "", 40 * time.Second},
		{"trouble", []error{status{503, "2"}, errors.New("reset"), nil}, 3, "", 2 * time.Second},
		{"too long", []error{status{429, "301"}}, 1, cloud.Throttled, 0},
		{"credentials", []error{status{401, ""}}, 1, cloud.Credentials, 0},
		{"not found", []error{status{404, ""}}, 1, cloud.NotFound, 0},
		{"conflict", []error{status{409, ""}}, 1, cloud.Conflict, 0},
		{"refused", []error{status{400, ""}}, 1, cloud.Refused, 0},
	} {
		clock, sink, calls := &cloudtest.Clock{}, &cloudtest.Sink{}, 0
		err := begin(clock, sink).Call(t.Context(), func(context.Context) error {
			calls++
			return c.answers[calls-1]
		})
		if (err == nil) != (c.kind == "") || err != nil && !cloud.Is(err, c.kind) || calls != c.calls {
			t.Errorf("%s: %d calls, %v", c.name, calls, err)
		}
		if sum := total(clock.Waits()); sum < c.least || sum > 5*time.Minute {
			t.Errorf("%s waited %v", c.name, clock.Waits())
		}
		if err != nil && strings.Contains(err.Error(), "hunter22") || strings.Contains(sink.Text(), "hunter22") {
			t.Errorf("%s says the secret: %v\n%s", c.name, err, sink.Text())
		}
	}
}

func TestCallGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	clock := &cloudtest.Clock{}
	err := begin(clock, &cloudtest.Sink{}).Call(t.Context(), func(context.Context) error { return status{500, ""} })
	sum := total(clock.Waits())
	if !cloud.Is(err, cloud.Unavailable) || sum < 4*time.Minute || sum > 5*time.Minute {
		t.Errorf("gave up with %v after %v", err, sum)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("aborted by a test")
	err = begin(clock, &cloudtest.Sink{On: func(string) { cancel(why) }}).Call(ctx, func(context.Context) error { return status{500, ""} })
	if !errors.Is(err, why) {
		t.Errorf("a cancelled call gave %v", err)
	}
}

// ask opens a session that may reach some addresses.
func ask(o cloud.Options, reach loom.Reach, endpoint string) *cloud.Session {
	return o.Begin(plainType, &loom.TaskSpec{Provider: loom.Provider{Fields: map[string]any{"endpoint_url": endpoint}}, Reach: reach}, nil, classify)
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		insecure bool
		want     string
	}{
		"": {false, "https://usual.example"}, "https://mine.example/api": {false, "https://mine.example/api"},
		"http://mine.example": {true, "http://mine.example"}, " https://mine.example ": {false, "https://mine.example"},
	} {
		got, err := ask(cloud.Options{Insecure: c.insecure}, loom.Reach{}, text).Endpoint(cloud.Fields{"endpoint_url": text}, "https://usual.example")
		if err != nil || got != c.want {
			t.Errorf("%q gave %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"http://mine.example", "mine.example", "https://", "ftp://mine.example", "https://u:hunter22@mine.example", "https://mine.example?x=1", "https://mine.example#a", "%"} {
		got, err := ask(cloud.Options{}, loom.Reach{}, text).Endpoint(cloud.Fields{"endpoint_url": text}, "")
		if !cloud.Is(err, cloud.Refused) || !strings.Contains(err.Error(), "endpoint_url") || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q gave %q, %v", text, got, err)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	f := cloud.Fields{"n": 12.0, "text": " x ", "list": " a,, b ,c", "json": []any{"a=1", "b=2"}, "on": "on", "off": false, "no": "false", "empty": " ", "yes": true, "big": "1000", "word": "ten", "neg": -1.0, "object": map[string]any{}}
	for name, want := range map[string]string{"n": "12", "text": "x", "absent": "", "empty": "", "yes": "true", "object": "", "json": ""} {
		if got := f.Text(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for name, want := range map[string]string{"list": "a|b|c", "json": "a=1|b=2", "absent": "", "empty": ""} {
		if got := strings.Join(f.List(name), "|"); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for name, want := range map[string]bool{"on": true, "yes": true, "off": false, "no": false, "empty": true, "absent": true} {
		if got := f.Switch(name, true); got != want {
			t.Errorf("%s is %t", name, got)
		}
	}
	if n, err := f.Number("n", 0, 100); n != 12 || err != nil {
		t.Errorf("12 is %d, %v", n, err)
	}
	if n, err := f.Number("empty", 7, 100); n != 7 || err != nil {
		t.Errorf("absent is %d, %v", n, err)
	}
	for _, name := range []string{"big", "word", "neg"} {
		if n, err := f.Number(name, 0, 100); !cloud.Is(err, cloud.Refused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is %d, %v", name, n, err)
		}
	}
	spec := &loom.TaskSpec{SSHUser: "debian", Provider: loom.Provider{Fields: map[string]any{"ssh_key_resource": "/var/coopr/work/t/providertypes/aws/ssh_keys/prod"}}}
	if auth := cloud.Auth(spec, "pw"); auth["user"] != "debian" || auth["identityfile"] != "ssh_keys/prod" || auth["password"] != "pw" {
		t.Errorf("auth is %v", auth)
	}
	spec.Provider.Fields["ssh_user"] = "ops"
	if auth := cloud.Auth(spec, ""); auth["user"] != "ops" || auth["password"] != nil {
		t.Errorf("auth is %v", auth)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{{"1.2.3.4", "10.0.0.1", "1.2.3.4", "10.0.0.1"}, {"1.2.3.4", "", "1.2.3.4", "1.2.3.4"}, {"", "10.0.0.1", "10.0.0.1", "10.0.0.1"}, {"", "", "", ""}} {
		if access, bind := cloud.Addresses(c[0], c[1]); access != c[2] || bind != c[3] {
			t.Errorf("%v gave %s and %s", c, access, bind)
		}
	}
}

func TestKindsOfAnswers(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]cloud.Kind{400: cloud.Refused, 401: cloud.Credentials, 403: cloud.Refused, 404: cloud.NotFound, 408: cloud.Unavailable, 409: cloud.Conflict,
		410: cloud.NotFound, 413: cloud.Quota, 422: cloud.Refused, 429: cloud.Throttled, 500: cloud.Unavailable, 503: cloud.Unavailable} {
		if e := cloud.FromHTTP(code, nil, "", nil); e.Kind != want || e.Message == "" {
			t.Errorf("%d is %+v", code, e)
		}
	}
	if e := cloud.FromHTTP(413, http.Header{"Retry-After": {"3"}}, "", nil); e.Kind != cloud.Throttled || e.RetryAfter != 3*time.Second {
		t.Errorf("413 with Retry-After is %+v", e)
	}
	at := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	if e := cloud.FromHTTP(503, http.Header{"Retry-After": {at}}, "", nil); e.RetryAfter < 50*time.Second || e.RetryAfter > time.Minute {
		t.Errorf("a date is %+v", e)
	}
	for _, text := range []string{"-5", "soon", "", "99999999999999999999"} {
		if e := cloud.FromHTTP(503, http.Header{"Retry-After": {text}}, "", nil); e.RetryAfter != 0 {
			t.Errorf("%q is %s", text, e.RetryAfter)
		}
	}
	_, err := ask(cloud.Options{}, loom.Anywhere(), "").Client(true).Get("http://127.0.0.1:1/?token=hunter22")
	if e := cloud.FromNetwork(err); e.Kind != cloud.Lost || !e.Before || strings.Contains(e.Message, "hunter22") {
		t.Errorf("nobody there is %+v", e)
	}
}

func FuzzTags(f *testing.F) {
	f.Add("Acme GmbH/_41", "5f0e8c1a-2b7d-5a3c-9e4f-1d6b8a7c9e02")
	f.Fuzz(func(t *testing.T, tenant, key string) {
		labels := map[string]string{cloud.LabelTenant: tenant, cloud.LabelKey: key}
		tags := cloud.Tags(labels)
		for i, tag := range tags {
			if strings.ContainsFunc(tag, func(c rune) bool {
				return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
			}) {
				t.Errorf("%q is no tag", tag)
			}
			tags[i] = strings.ToUpper(tag) // some clouds change the case
		}
		got := cloud.FromTags(append(tags, "loom", "other"))
		if got[cloud.LabelTenant] != tenant || got[cloud.LabelKey] != key {
			t.Errorf("%q and %q read as %v", tenant, key, got)
		}
	})
}
