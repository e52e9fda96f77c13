package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestExpandCommand(t *testing.T) {
	t.Parallel()
	// Three nodes with two services.
	ask := func(config any) string {
		text, err := json.Marshal(map[string]any{
			"cluster": map[string]any{"id": "42", "owner": "ana"}, "node": "b", "config": config, "unknown": 1,
			"nodes": []any{
				map[string]any{"id": "b", "nodenum": 1002, "hostname": "b.lab", "ipaddresses": map[string]any{"bind_v4": "10.0.0.3"}, "services": []any{"kv"}},
				map[string]any{"id": "m", "nodenum": 1000, "hostname": "m.lab", "ipaddresses": map[string]any{"bind_v4": "10.0.0.1", "access_v4": "198.51.100.7"}, "services": []any{"api"}},
				map[string]any{"id": "a", "nodenum": 1001, "hostname": "a.lab", "ipaddresses": map[string]any{"bind_v4": "10.0.0.2"}, "services": []any{"kv", "api"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	examples := map[string]string{
		"kv://%host.service.kv%/x":                    "kv://a.lab,b.lab/x",
		"%join(map(host.service.kv,'$:7000'),';')%":   "a.lab:7000;b.lab:7000",
		`%map(ip.service.kv,"<$>")%`:                  "<10.0.0.2>,<10.0.0.3>",
		"%host.service.kv[0]%":                        "a.lab",
		"%instance.self.service.kv%":                  "2",
		"%instance.self.service.api%":                 "%instance.self.service.api%",
		"%num.service.api% %num.service.none%":        "2 0",
		"%host.service.none%":                         "%host.service.none%",
		"%ip.self%:%cluster.owner%":                   "10.0.0.3:ana",
		"%join(map(cluster.owner,'$@x.example'),'')%": "ana@x.example",
		"%map(num.service.kv,'$$$')%":                 "$2",
		"%join(host.service.kv, ',')%":                "a.lab,b.lab",
	}
	config, want := map[string]any{"n": 1.5, "z": nil}, map[string]any{"n": 1.5, "z": nil}
	for text, value := range examples {
		config[text], want[text] = []any{text, true}, []any{value, true}
	}
	text, code, warnings := answerOf(ask(config), "expand")
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 0 || !reflect.DeepEqual(got, map[string]any{"config": want}) {
		t.Errorf("got %d, %s, %v", code, text, err)
	}
	if strings.Count(warnings, "warning") != 2 || !strings.Contains(warnings, "“none”") {
		t.Errorf("warnings are %q", warnings)
	}
	text, code, _ = answerOf(ask(map[string]any{
		"a": []any{"x", map[string]any{"b.c": "ab %host.service.kv[2]%"}}, "d": "%ip.access_v4.service.api%", "e": "%host.slef% %join(host.self%", "f": "%host.self%"}), "expand")
	var no expandNo
	if err := json.Unmarshal([]byte(text), &no); err != nil || code != exitNo {
		t.Fatalf("got %d, %s, %v", code, text, err)
	}
	var seen []string
	for _, e := range no.Errors {
		seen = append(seen, fmt.Sprintf("%s %s %d", e.Code, e.At, e.Offset))
	}
	if want := []string{"INCOMPLETE a[1].b.c 3", "INCOMPLETE d 0", "UNKNOWN e 0", "SYNTAX e 12"}; !slices.Equal(seen, want) {
		t.Errorf("got errors %q, want %q", seen, want)
	}
	if !strings.Contains(text, "did you mean “host.self”?") {
		t.Errorf("nothing is proposed: %s", text)
	}
	for input, says := range map[string]string{
		"{\n\"config\": 7}":                             "config: line 2, column 11",
		`{"nodes": []}`:                                 "config: line 1, column 1",
		`{"config": {}, "node": "x"}`:                   "node: line 1, column 24",
		`{"config": {}, "nodes": [{"id":"a"},{"id":3]}`: "line 1, column 44",
	} {
		if text, code, message := answerOf(input, "expand"); code != exitUsage || text != "" || !strings.Contains(message, says) {
			t.Errorf("%s: got %d, %q, %q", input, code, text, message)
		}
	}
}

func TestMacrosLint(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a": {"b": ["%host.self%", "%%Y"]}}`:                      "",
		`{"a": {"b": ["x", "%% %host.self%"]}}`:                     "a.b[1]",
		`{"defaults": {"config": {"a": "%% %host.self%"}}}`:         "defaults.config.a",
		`{"defaults": {}, "description": "%% %host.self%"}`:         "",
		`{"provisioner": {"actions": {"x": "%% %host.self%"}}}`:     "",
		`{"provisioner": {}, "links": [{"url": "%host.self[0]%"}]}`: "links[0].url",
	} {
		text, code, _ := answerOf(input, "macros", "lint")
		var answer lintAnswer
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, v := range answer.Values {
			at = append(at, v.At)
		}
		if strings.Join(at, " ") != want || (code == exitNo) != (want != "") {
			t.Errorf("%s: got %d, %s", input, code, text)
		}
	}
}
