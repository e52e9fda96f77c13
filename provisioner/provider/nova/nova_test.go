package nova_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

func TestStates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, task, fault string
		want                cloud.State
		detail              string
	}{
		{"BUILD", "spawning", "", cloud.Pending, "BUILD"}, {"", "", "", cloud.Pending, "asked for"}, {"REBOOT", "", "", cloud.Pending, "REBOOT"},
		{"UNKNOWN", "", "", cloud.Pending, "UNKNOWN"}, {"ACTIVE", "", "", cloud.Running, "ACTIVE"}, {"active", "", "", cloud.Running, "ACTIVE"},
		{"VERIFY_RESIZE", "", "", cloud.Running, ""}, {"ACTIVE", "deleting", "", cloud.Leaving, "deleted"}, {"BUILD", "deleting", "", cloud.Leaving, "deleted"},
		{"DELETED", "", "", cloud.Gone, "deleted"}, {"SOFT_DELETED", "deleting", "", cloud.Gone, "deleted"}, {"SHUTOFF", "", "", cloud.Stopped, "switched off"}, {"SHUTOFF", "powering-on", "", cloud.Pending, "powering-on"},
		{"SHELVED_OFFLOADED", "", "", cloud.Failed, "SHELVED_OFFLOADED"}, {"ERROR", "", "", cloud.Failed, "gives no reason"},
		{"ERROR", "", "No valid host was found. ", cloud.Failed, "No valid host was found. (the cloud’s capacity"},
		{"ERROR", "", "Image is corrupt", cloud.Failed, "Image is corrupt"},
	} {
		m := nova.Machine(&servers.Server{ID: "s", Status: c.status, TaskState: c.task, Fault: servers.Fault{Message: c.fault}})
		if m.State != c.want || !strings.Contains(m.Detail, c.detail) {
			t.Errorf("%s %s gave %s, %s", c.status, c.task, m.State, m.Detail)
		}
	}
}

func answer(status int, body string, header ...string) error {
	e := gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body), ResponseHeader: http.Header{}, URL: "https://cloud.example/with/secret"}
	for n := 0; n < len(header); n += 2 {
		e.ResponseHeader.Set(header[n], header[n+1])
	}
	return e
}

func TestClassify(t *testing.T) {
	t.Parallel()
	refused := answer(401, `{"error": {"code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized"}}`)
	for _, c := range []struct {
		err     error
		kind    cloud.Kind
		message string
		wait    time.Duration
	}{
		{refused, cloud.Credentials, "requires authentication", 0},
		{&gophercloud.ErrUnableToReauthenticate{ErrOriginal: io.EOF, ErrReauth: refused}, cloud.Credentials, "requires authentication", 0},
		{&gophercloud.ErrErrorAfterReauthentication{ErrOriginal: answer(404, `{"itemNotFound": {"message": "no instance", "code": 404}}`)}, cloud.NotFound, "no instance", 0},
		{answer(403, `{"forbidden": {"message": "Quota exceeded for instances", "code": 403}}`), cloud.Quota, "Quota exceeded", 0},
		{answer(403, `{"forbidden": {"message": "Policy doesn't allow it", "code": 403}}`), cloud.Refused, "Policy doesn't allow it", 0},
		{answer(403, `{"forbidden": {"message": "Only volume-backed servers are allowed for flavors with zero disk.", "code": 403}}`), cloud.Refused, "Only volume-backed", 0},
		{answer(400, `{"badRequest": {"message": "Invalid key_name provided.", "code": 400}}`), cloud.Refused, "Invalid key_name provided. (provider field ssh_keypair)", 0},
		{answer(400, `{"badRequest": {"message": "The requested availability zone is not available", "code": 400}}`), cloud.Refused, "(provider field availability_zone)", 0},
		{answer(400, `{"badRequest": {"message": "Security group web not found for project 1.", "code": 400}}`), cloud.Refused, "(provider field security_groups)", 0},
		{answer(400, `{"badRequest": {"message": "Invalid imageRef provided.", "code": 400}}`), cloud.Refused, "(the image of the image type)", 0},
		{answer(400, `{"badRequest": {"message": "Flavor m1.giant could not be found.", "code": 400}}`), cloud.Refused, "(the flavor of the hardware type)", 0},
		{answer(400, `{"badRequest": {"message": "Network 7 could not be found.", "code": 400}}`), cloud.Refused, "(provider field network_ids)", 0},
		{answer(400, `{"badRequest": {"message": "Volume is smaller than the minimum size", "code": 400}}`), cloud.Refused, "(provider field boot_volume_size_gb)", 0},
		{answer(400, `{"badRequest": {"message": "Flavor's disk is too small for requested image.", "code": 400}}`), cloud.Refused, "requested image.", 0},
		{answer(409, `{"NeutronError": {"type": "OverQuota", "message": "Resources exceeded", "detail": ""}}`), cloud.Quota, "Resources exceeded", 0},
		{answer(409, `{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more", "detail": ""}}`), cloud.Quota, "No more", 0},
		{answer(409, `{"conflictingRequest": {"message": "taken", "code": 409}}`), cloud.Conflict, "taken", 0},
		{answer(412, `{"NeutronError": {"type": "RevisionNumberConstraintFailed", "message": "changed", "detail": ""}}`), cloud.Conflict, "changed", 0},
		{answer(413, `{"overLimit": {"message": "slow down", "code": 413}}`, "Retry-After", "12"), cloud.Throttled, "slow down", 12 * time.Second},
		{answer(413, `{"overLimit": {"message": "too much", "code": 413}}`, "Retry-After", "0"), cloud.Quota, "too much", 0},
		{answer(429, `{"message": "plain"}`), cloud.Throttled, "plain", 0},
		{answer(429, `{"overLimit": {"message": "quota of calls"}}`), cloud.Throttled, "quota of calls", 0},
		{answer(500, `{"computeFault": {"message": "quota of the database exceeded"}}`), cloud.Unavailable, "database", 0},
		{answer(502, `<html>secret</html>`), cloud.Unavailable, "502", 0}, {answer(302, ``), cloud.Refused, "302", 0},
		{answer(400, `[]`), cloud.Refused, "400", 0}, {answer(400, `{"x": null, "y": 7}`), cloud.Refused, "400", 0},
		{&url.Error{Op: "Get", URL: "https://cloud.example/with/secret", Err: io.ErrUnexpectedEOF}, cloud.Lost, "unexpected EOF", 0},
		{errors.New("invalid character"), cloud.Lost, "invalid character", 0},
		{cloud.Errorf(cloud.Busy, "as it is"), cloud.Busy, "as it is", 0},
	} {
		e := nova.Classify(c.err)
		if e.Kind != c.kind || !strings.Contains(e.Message, c.message) || e.RetryAfter != c.wait || strings.Contains(e.Message, "secret") {
			t.Errorf("%v gave %s: %s (%s)", c.err, e.Kind, e.Message, e.RetryAfter)
		}
	}
	if nova.Classify(nil) != nil {
		t.Error("nil is an error")
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	c := nova.Catalog{Provider: &gophercloud.ProviderClient{}, Field: "some_region", Endpoints: []nova.Endpoint{
		{"compute", "old", "one", "https://old.example/v1"}, {"compute", "nova", "one", "https://one.example/v2.1"}, {"compute", "nova", "two", "https://two.example/v2.1/"},
		{"network", "neutron", "one", "https://one.example:9696"}, {"network", "neutron", "two", "https://two.example:9696/v2.0"}, {"empty", "x", "one", ""},
	}}
	for _, w := range []struct{ region, kind, name, version, want string }{
		{"", "compute", "nova", "", "https://one.example/v2.1/servers"}, {"two", "compute", "", "", "https://two.example/v2.1/servers"},
		{"one", "network", "", "v2.0", "https://one.example:9696/v2.0/servers"}, {"two", "network", "", "v2.0", "https://two.example:9696/v2.0/servers"},
	} {
		c.Region = w.region
		if service, err := c.Service(w.kind, w.name, w.version); err != nil || service.ServiceURL("servers") != w.want {
			t.Errorf("%v gave %v, %v", w, service, err)
		}
	}
	c.Region = "three"
	if _, err := c.Service("compute", "nova", ""); !cloud.Is(err, cloud.Refused) || !strings.Contains(err.Error(), "some_region") || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("an unknown region gave %v", err)
	}
	if _, err := c.Service("empty", "", ""); !cloud.Is(err, cloud.Refused) {
		t.Errorf("no address gave %v", err)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	spec := &loom.TaskSpec{Results: map[string]any{"providerid": "s1", "ssh-auth": map[string]any{"password": "pa55"}}}
	if a, b := nova.Password(spec, "s1"), nova.Password(spec, "s2"); a != "pa55" || b != "" {
		t.Errorf("%q, %q", a, b)
	}
	if got := nova.Password(&loom.TaskSpec{Results: map[string]any{"providerid": "s1", "ssh-auth": "nonsense"}}, "s1"); got != "" {
		t.Errorf("%q", got)
	}
}
