package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestReadConfigure(t *testing.T) {
	t.Parallel()
	in, err := ReadChange(loom.ChangeConfigure, []byte(`{"config":{"n":1.50,"nil":null},"providerFields":{"zone":5},"configPatch":null,"unknown":1}`))
	c := in.Configure
	if err != nil || c.Config["n"] != json.Number("1.50") || c.ConfigPatch != nil || c.Revision != nil || !c.Restart || in.ProviderFields["zone"] != "5" {
		t.Errorf("read %+v, %v, %v", c, in, err)
	}
	if _, there := c.Config["nil"]; !there {
		t.Error("a null inside a config was lost")
	}
	in, err = ReadChange(loom.ChangeConfigure, []byte(`{"configPatch":{"gone":null},"restart":"false"}`))
	if _, there := in.Configure.ConfigPatch["gone"]; err != nil || in.Configure.Restart || !there {
		t.Errorf("read %+v, %v", in.Configure, err)
	}
	if in, err = ReadChange(loom.ChangeConfigure, []byte(`{"revision":"3"}`)); err != nil || in.Configure.Revision == nil || *in.Configure.Revision != 3 {
		t.Errorf("read %+v, %v", in.Configure, err)
	}
}

func TestReadDelete(t *testing.T) {
	t.Parallel()
	for body, abort := range map[string]bool{"": false, " null ": false, "{}": false, `{"abort":true}`: true, `{"abort":"true"}`: true, `{"abort":null}`: false} {
		if in, err := ReadDelete([]byte(body)); err != nil || in.Abort != abort || in.ProviderFields != nil {
			t.Errorf("%q: %+v, %v", body, in, err)
		}
	}
}

func TestReadMillis(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"0": true, "253402300799999": true, "253402300800000": false, "-1": false, "": false, "1.5": false, "x": false} {
		if _, got := ReadMillis(text); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestReadPreviewOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.PreviewKinds {
		in, err := ReadPreview([]byte(`{"kind":"` + string(kind) + `","clusterId":7,"service":"web","request":{"name":"x","clusterTemplate":"t","numMachines":1,"config":{},"abort":true,"services":["a","b"],"providerFields":{"a":1}}}`))
		if err != nil || in.Kind != kind {
			t.Errorf("%s: %+v, %v", kind, in, err)
		}
		if kind == loom.ChangeCreate {
			continue
		}
		runs := kind == loom.ChangeStart || kind == loom.ChangeStop || kind == loom.ChangeRestart
		if in.Cluster != 7 || in.ProviderFields["a"] != "1" || (in.Service != "") != runs || in.Abort != (kind == loom.ChangeDelete) || (in.Configure != nil) != (kind == loom.ChangeConfigure) ||
			(len(in.Services) == 2) != (kind == loom.ChangeAddServices) {
			t.Errorf("%s: %+v", kind, in)
		}
	}
}

// TestReadPreviewOfAnOperation: what follows an operation names it.
func TestReadPreviewOfAnOperation(t *testing.T) {
	t.Parallel()
	for _, kind := range []loom.ChangeKind{loom.ChangeRollback, loom.ChangeRetry} {
		in, err := ReadPreview([]byte(`{"kind":"` + string(kind) + `","clusterId":"00000007","request":{"operation":3,"skip":[2],"reason":"by hand"}}`))
		if err != nil || in.Change.Operation != 3 || (len(in.Change.Skip) == 1) != (kind == loom.ChangeRetry) {
			t.Errorf("%s: %+v, %v", kind, in.Change, err)
		}
		_, err = ReadPreview([]byte(`{"kind":"` + string(kind) + `","clusterId":"00000007","request":{"operation":"x"}}`))
		if e := loom.AsError(err); err == nil || e.Kind != loom.Invalid || len(e.Fields) != 1 || !strings.HasSuffix(e.Fields[0].Field, "operation") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// FuzzCreate reads anything as a request for a cluster: an error is Invalid and
// names no field twice, and so do the checks behind it of what was read.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"name":"x","clusterTemplate":"t","numMachines":3}`, `{"name":5,"numMachines":"3","services":["a",null],"config":{"n":1.0}}`,
		`{"labels":{"a":true},"initialLeaseDuration":-1,"configPatch":{"a":null},"onFailure":"undo"}`, `{"numMachines":1e99,"name":"\u0000"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := ReadCreate(body)
		if err == nil {
			err = loom.InvalidFields(in.Validate(1 << 30))
		}
		if err == nil {
			return
		}
		var e *loom.Error
		if !errors.As(err, &e) || e.Kind != loom.Invalid || e.Message == "" {
			t.Fatalf("%q: %v", body, err)
		}
		seen := map[loom.FieldError]bool{}
		for _, field := range e.Fields {
			if seen[field] || field.Field == "" || field.Message == "" {
				t.Errorf("%q: field %+v", body, field)
			}
			seen[field] = true
		}
	})
}

// FuzzClusterBodies reads anything as each other body about clusters: an error is
// Invalid, and nothing panics.
func FuzzClusterBodies(f *testing.F) {
	for _, seed := range []string{``, `null`, `{"config":{"a":[1,{"b":null}]},"restart":"false"}`, `{"configPatch":{"a":null}}`, `{"revision":"2"}`, `{"services":["a","a"]}`,
		`{"abort":"true","providerFields":{"a":1}}`, `{"expireTime":null}`, `{"labels":{"a":1},"ownerId":"b","protected":true}`, `{"hash":"x"}`,
		`{"kind":"configure","clusterId":"1","request":{"revision":1}}`, `{"kind":"stop","clusterId":1,"service":"web"}`, `{"kind":"expand","clusterId":"1"}`,
		`{"numMachines":"4","onFailure":"undo"}`, `{"nodes":["A","a"],"batch":0,"minHealthy":-1}`, `{"hardwaretype":"x","batch":2,"services":[]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, configure := ReadChange(loom.ChangeConfigure, body)
		if c := in.Configure; configure == nil && c.Config == nil && c.ConfigPatch == nil && c.Revision == nil && len(body) > 0 && json.Valid(body) {
			var m map[string]json.RawMessage
			if json.Unmarshal(body, &m) == nil && string(m["config"]) == "{}" {
				t.Errorf("%q: an empty config was lost", body)
			}
		}
		_, remove := ReadDelete(body)
		_, expiry := ReadExpiry(body)
		_, edit := ReadEdit(body)
		_, preview := ReadPreview(body)
		_, apply := ReadApply(body, "id")
		errs := []error{remove, expiry, edit, preview, apply}
		for _, kind := range loom.PreviewKinds {
			change, err := ReadChange(kind, body)
			if c := change.Change; err == nil && (c.Batch < 0 || c.MinHealthy != nil && *c.MinHealthy < 0) {
				t.Errorf("%q: %s takes a batch of %d", body, kind, c.Batch)
			}
			errs = append(errs, err)
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, loom.Invalid) {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}
