package macro

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
)

// lab is the cluster of the examples; "m", "a" and "b" are the ids of its nodes.
func lab() *Facts {
	node := func(number int, host, ip string, services ...string) loom.NodeProperties {
		return loom.NodeProperties{Number: number, Hostname: host, Addresses: map[string]string{"bind_v4": ip}, Services: services}
	}
	m := node(1000, "m.lab", "10.0.0.1", "api")
	m.Addresses["access_v4"] = "198.51.100.7"
	return NewFacts("ana", map[loom.NodeID]loom.NodeProperties{
		"b": node(1002, "b.lab", "10.0.0.3", "kv"),
		"m": m,
		"a": node(1001, "a.lab", "10.0.0.2", "api", "kv", "a.b"),
		"x": node(1003, "", "", "bare"),
	})
}

func TestExpandText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		// want is the result; says is part of the only problem's reason, severity its kind.
		want     string
		severity Severity
		says     string
	}{
		{"kv://%host.service.kv%/x", "kv://a.lab,b.lab/x", "", ""},
		{"%join(map(host.service.kv,'$:7000'),';')%", "a.lab:7000;b.lab:7000", "", ""},
		{`%map(ip.service.kv,"<$>")%`, "<10.0.0.2>,<10.0.0.3>", "", ""},
		{"%host.service.kv[0]%", "a.lab", "", ""},
		{"%host.service.kv[2]%", "%host.service.kv[2]%", Unresolved, "no index 2: 2 of the cluster's nodes have the service “kv”"},
		{"%instance.self.service.kv%", "2", "", ""},
		{"%instance.self.service.api%", "%instance.self.service.api%", Absent, "node 1002"},
		{"%num.service.api%", "2", "", ""},
		{"%num.service.none%", "0", "", ""},
		{"%host.service.none%", "%host.service.none%", Absent, "“none”"},
		{"%ip.access_v4.service.api%", "%ip.access_v4.service.api%", Unresolved, "node 1001 has no address of type “access_v4”"},
		{"%ip.self%:%cluster.owner%", "10.0.0.3:ana", "", ""},
		{"%join(map(cluster.owner,'$@x.example'),'')%", "ana@x.example", "", ""},
		{"%map(num.service.kv,'$$$')%", "$2", "", ""},
		{"%join(host.service.kv, ',')%", "a.lab,b.lab", "", ""},

		{"%join ( map ( host.service.kv , '$' ) , \"\n\" ) %", "a.lab\nb.lab", "", ""},
		{`%join(host.service.kv,"'")%`, "a.lab'b.lab", "", ""},
		{"%join(host.service.kv,'%')%", "a.lab%b.lab", "", ""},
		{"%join(host.service.kv,'')%", "a.labb.lab", "", ""},
		{"%map(host.service.kv,'')%", ",", "", ""},
		{"%map(host.service.kv,'x$$y')%", "x$y,x$y", "", ""},
		{"%join(ip.self,';')%", "10.0.0.3", "", ""},
		{"%ip.bind_v4.self%", "10.0.0.3", "", ""},
		{"%ip.access_v4.self%", "%ip.access_v4.self%", Unresolved, "node 1002 has no address of type “access_v4”"},
		{"%ip.access_v4.service.api[0]%", "198.51.100.7", "", ""},
		{"%ip.access_v4.service.api[1]%", "%ip.access_v4.service.api[1]%", Unresolved, "node 1001"},
		{"%host.self%", "b.lab", "", ""},
		{"%host.self.service.kv% %ip.self.service.kv%", "b.lab 10.0.0.3", "", ""},
		{"%host.self.service.api%", "%host.self.service.api%", Unresolved, "does not have the service “api”"},
		{"%host.service.bare%", "%host.service.bare%", Unresolved, "node 1003 has no host name"},
		{"%host.service.none[7]%", "%host.service.none[7]%", Absent, "“none”"},
		{"%map(host.service.none,'$')%", "%map(host.service.none,'$')%", Absent, "“none”"},
		{"%host.service.a.b% %ip.bind_v4.service.a.b%", "a.lab 10.0.0.2", "", ""},
		{"%host.self% and %host.service.none%", "b.lab and %host.service.none%", Absent, "“none”"},

		{"", "", "", ""},
		{"50% off", "50% off", "", ""},
		{"100%", "100%", "", ""},
		{"%%Y-%%m", "%%Y-%%m", "", ""},
		{"50%% to 60%%", "50%% to 60%%", "", ""},
		{"50%% on %host.self%", "50% on b.lab", "", ""},
		{"%host.self%%cluster.owner%", "b.labana", "", ""},
		{"%%%host.self%%%", "%b.lab%", "", ""},
		{"%host.self% 100%", "b.lab 100%", "", ""},
		{"%%%%%host.service.none%", "%%%host.service.none%", Absent, "“none”"},
		{"über %host.self%", "über b.lab", "", ""},

		{"50% of %%", "50% of %%", "", ""},
		{"%host.self% is 50% of %%", "b.lab is 50% of %", "", ""},
		{"%hots.self%%", "%hots.self%%", "", ""},

		{"50% to 60%", "50% to 60%", Syntax, "a blank"},
		{"%host.slef%", "%host.slef%", Syntax, "did you mean “host.self”?"},
		{"%hosts.service.kv%", "%hosts.service.kv%", Syntax, "did you mean “host.service.kv”?"},
		{"%ip.access_v4.services.kv%", "%ip.access_v4.services.kv%", Syntax, "did you mean “ip.access_v4.service.kv”?"},
		{"%ip.service.a.b%", "%ip.service.a.b%", Syntax, "did you mean “ip.bind_v4.service.a.b”?"},
		{"%host.service.kvs%", "%host.service.kvs%", Absent, "the nearest name there is “kv”"},
		{"%cluster.name%", "%cluster.name%", Syntax, "not a valid macro name"},
		{"%Host.self%", "%Host.self%", Syntax, "not a valid macro name"},
		{"%host.service.%", "%host.service.%", Syntax, "lacks the name of a service"},
		{"%ip..self%", "%ip..self%", Syntax, "not a valid macro name"},
		{"%host.self[0]%", "%host.self[0]%", Syntax, "takes no index"},
		{"%num.service.kv[0]%", "%num.service.kv[0]%", Syntax, "takes no index"},
		{"%cluster.owner[0]%", "%cluster.owner[0]%", Syntax, "takes no index"},
		{"%instance.self.service.kv[0]%", "%instance.self.service.kv[0]%", Syntax, "takes no index"},
		{"%host.service.kv[]%", "%host.service.kv[]%", Syntax, "digits"},
		{"%host.service.kv[0%", "%host.service.kv[0%", Syntax, "“]”"},
		{"%host.service.kv[9999999999]%", "%host.service.kv[9999999999]%", Syntax, "9 digits"},
		{"%join(join(host.self,','),',')%", "%join(join(host.self,','),',')%", Syntax, "outermost"},
		{"%map(map(host.self,'$'),'$')%", "%map(map(host.self,'$'),'$')%", Syntax, "only once"},
		{"%map(join(host.self,','),'$')%", "%map(join(host.self,','),'$')%", Syntax, "outermost"},
		{"%join(host.self)%", "%join(host.self)%", Syntax, "a comma"},
		{"%join(host.self,x)%", "%join(host.self,x)%", Syntax, "quotes"},
		{"%join(host.self,'x%", "%join(host.self,'x%", Syntax, "not closed"},
		{"%join(host.self,'x'%", "%join(host.self,'x'%", Syntax, "“)”"},
		{"%host.self,%", "%host.self,%", Syntax, "closing"},
		{"% host.self%", "% host.self%", Syntax, "blank"},
		{"%join%", "%join%", Syntax, "not a valid macro name"},
		{"%() %host.self%", "%() %host.self%", Syntax, "name of a macro"},
	}
	f := lab()
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			t.Parallel()
			got, problems := f.ExpandText(test.text, "b")
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.severity == "" {
				if len(problems) > 0 {
					t.Errorf("unwanted problems %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Severity != test.severity || !strings.Contains(problems[0].Reason, test.says) {
				t.Errorf("got problems %v, want one %s saying %q", problems, test.severity, test.says)
			}
			if syntax := len(ValidateText(test.text)) > 0; syntax != (test.severity == Syntax) {
				t.Errorf("the validator says %v", ValidateText(test.text))
			}
		})
	}
}

func TestExpandTextReportsAll(t *testing.T) {
	t.Parallel()
	got, problems := lab().ExpandText("ü%nope% %host.self% %host.service.kv[9]% %host.service.none% %also nope%", "a")
	if want := "ü%nope% a.lab %host.service.kv[9]% %host.service.none% %also nope%"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var seen []string
	for _, p := range problems {
		seen = append(seen, fmt.Sprintf("%d %s %s", p.Column, p.Severity, p.Macro))
	}
	want := []string{"2 syntax %nope%", "21 unresolved %host.service.kv[9]%", "42 absent %host.service.none%", "62 syntax %also nope%"}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func config() map[string]any {
	return map[string]any{
		"%host.self%": "%host.self%",
		"n":           7.5, "t": true, "z": nil,
		"deep": map[string]any{"list": []any{"%ip.self%", 1.0, map[string]any{"k": "%cluster.owner%"}}, "plain": "100%"},
		"a/b~": "%bad name%",
		"none": "%host.service.none%",
	}
}

func TestExpandConfig(t *testing.T) {
	t.Parallel()
	before := config()
	got, problems := lab().Expand(before, "m")
	want := config()
	want["%host.self%"] = "m.lab"
	want["deep"] = map[string]any{"list": []any{"10.0.0.1", 1.0, map[string]any{"k": "ana"}}, "plain": "100%"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !reflect.DeepEqual(before, config()) {
		t.Errorf("the config itself was changed to %v", before)
	}
	errs, warnings := Split(problems)
	if len(errs) != 1 || errs[0].Pointer != "/a~1b~0" || errs[0].Column != 1 || errs[0].Macro != "%bad name%" {
		t.Errorf("got errors %v", errs)
	}
	if len(warnings) != 1 || warnings[0].Pointer != "/none" {
		t.Errorf("got warnings %v", warnings)
	}
	if got, _ := lab().Expand(nil, "m"); got != nil {
		t.Errorf("no config becomes %v", got)
	}
}

func TestExpandAt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path   []string
		list   any
		errors int
	}{
		{[]string{"deep", "list"}, []any{"10.0.0.1", 1.0, map[string]any{"k": "ana"}}, 0},
		{[]string{"deep", "absent"}, config()["deep"].(map[string]any)["list"], 0},
		{[]string{"n", "x"}, config()["deep"].(map[string]any)["list"], 0},
		{[]string{"a/b~"}, config()["deep"].(map[string]any)["list"], 1},
	} {
		before := config()
		got, problems := lab().ExpandAt(before, test.path, "m")
		want := config()
		want["deep"].(map[string]any)["list"] = test.list
		if !reflect.DeepEqual(got, want) || len(problems) != test.errors {
			t.Errorf("%v: got %v, %v", test.path, got, problems)
		}
		if !reflect.DeepEqual(before, config()) {
			t.Errorf("%v: the config itself was changed", test.path)
		}
	}
}

func TestExpandLink(t *testing.T) {
	t.Parallel()
	f := lab()
	for _, test := range []struct {
		text string
		self loom.NodeID
		want string
	}{
		{"http://%ip.access_v4.service.api[0]%/", "", "http://198.51.100.7/"},
		{"http://%ip.access_v4.service.api[1]%/", "", "http://%ip.access_v4.service.api[1]%/"},
		{"http://%host.self%/", "", "http://%host.self%/"},
		{"http://%host.self%/", "a", "http://a.lab/"},
		{"http://%host.self%/", "gone", "http://%host.self%/"},
		{"http://%host.self%/%oops%", "a", "http://%host.self%/%oops%"},
		{"http://x/?q=100%%", "a", "http://x/?q=100%%"},
	} {
		if got := f.ExpandLink(test.text, test.self); got != test.want {
			t.Errorf("%q for %q: got %q, want %q", test.text, test.self, got, test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	problems := lab().Check(map[string]any{
		"a": "%ip.access_v4.service.api%", "b": "%host.service.kv[2]%", "c": "%host.service.none%",
		"d": "%instance.self.service.none%", "e": "%what%", "f": "%ip.access_v4.self%",
	})
	var seen []string
	for _, p := range problems {
		seen = append(seen, p.Pointer+" "+string(p.Severity))
	}
	if want := []string{"/b unresolved", "/c absent", "/e syntax"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	f := lab()
	long := strings.Repeat("x", MaxValue)
	if got, problems := f.ExpandText(long+long, "a"); got != long+long || problems != nil {
		t.Error("a long text without macros is not left alone")
	}
	if _, problems := f.ExpandText(long+"%host.self%", "a"); len(problems) != 1 || problems[0].Severity != Limit {
		t.Errorf("a long value with a macro gives %v", problems)
	}
	if problems := ValidateText(long + "%host.self%"); len(problems) != 1 || problems[0].Severity != Limit {
		t.Errorf("a long value with a macro validates as %v", problems)
	}
	many := map[loom.NodeID]loom.NodeProperties{}
	for i := range 1000 {
		many[loom.NodeID(fmt.Sprint(i))] = loom.NodeProperties{Number: i, Hostname: strings.Repeat("h", 60), Services: []string{"s"}}
	}
	g := NewFacts("ana", many)
	if _, problems := g.ExpandText("%map(host.service.s,'"+strings.Repeat("$-", 1999)+"')%", "0"); len(problems) != 1 || problems[0].Severity != Limit {
		t.Errorf("a huge macro gives %v", problems)
	}
	big := map[string]any{}
	for i := range 100 {
		big[fmt.Sprint(i)] = "%host.service.s%"
	}
	got, problems := g.Expand(big, "0")
	size := 0
	for _, v := range got {
		size += len(v.(string))
	}
	if len(problems) == 0 || problems[0].Severity != Limit || size > MaxExpansion+MaxValue {
		t.Errorf("100 large values make %d bytes with %d problems", size, len(problems))
	}
	deep := map[string]any{"k": "%host.self%"}
	for range MaxDepth - 1 {
		deep = map[string]any{"k": deep}
	}
	if problems := Validate(deep); len(problems) > 0 {
		t.Errorf("a config of the allowed depth gives %v", problems)
	}
	if problems := Validate(map[string]any{"k": deep}); len(problems) != 1 || problems[0].Severity != Limit {
		t.Errorf("a config too deep gives %v", problems)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	problems := lab().Check(config())
	err := Error("config", problems)
	var e *loom.Error
	if !errors.As(err, &e) || e.Kind != loom.Invalid || len(e.Fields) != 1 || e.Fields[0].Field != "config/a~1b~0" ||
		!strings.HasPrefix(e.Fields[0].Message, "column 1, %bad name%: ") {
		t.Errorf("got %#v", err)
	}
	_, warnings := Split(problems)
	if err := Error("config", warnings); err != nil {
		t.Errorf("warnings alone give %v", err)
	}
}

func TestFactsAreShared(t *testing.T) {
	t.Parallel()
	f := lab()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				for id, want := range map[loom.NodeID]string{"m": "m.lab of a.lab,b.lab", "b": "b.lab of a.lab,b.lab"} {
					if got, _ := f.ExpandText("%host.self% of %host.service.kv%", id); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}
			}
		})
	}
	group.Wait()
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{
		"", "%", "%%", "a%%b%", "%host.self%", "%join(map(host.service.kv,'$:1'),\";\")%", "%ip.access_v4.service.api[0]%",
		"50% to 60%", "%host.self%%cluster.owner%", "%map(num.service.kv,'$$$')%", "%join(a,'%", "ü%ü%", "%host.service.none[3]%",
	} {
		f.Add(seed)
	}
	facts := lab()
	f.Fuzz(func(t *testing.T, text string) {
		valid := len(ValidateText(text)) == 0
		got, problems := facts.ExpandText(text, "a")
		if !strings.Contains(text, "%") && got != text {
			t.Errorf("%q without percent signs became %q", text, got)
		}
		template, _ := parse(text)
		if !template.HasMacros() && got != text {
			t.Errorf("%q without macros became %q", text, got)
		}
		for _, p := range problems {
			if valid && p.Severity == Syntax {
				t.Errorf("%q passed the validator, then: %v", text, p)
			}
			if p.Column < 0 || p.Reason == "" {
				t.Errorf("%q gives an empty problem %+v", text, p)
			}
		}
		if link := facts.ExpandLink(text, ""); !valid && link != text {
			t.Errorf("the wrong link %q became %q", text, link)
		}
		object := map[string]any{text: []any{text, 1.0, nil, true}}
		out, _ := facts.Expand(object, "a")
		list, ok := out[text].([]any)
		if !ok || len(out) != 1 || list[0] != got || list[1] != 1.0 || list[2] != nil || list[3] != true {
			t.Errorf("%v became %v", object, out)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	nodes := map[loom.NodeID]loom.NodeProperties{}
	for i := range 10_000 {
		nodes[loom.NodeID(fmt.Sprint(i))] = loom.NodeProperties{Number: i, Hostname: fmt.Sprintf("web42-%d.local", i), Services: []string{"s"}}
	}
	f := NewFacts("ana", nodes)
	config := map[string]any{"all": "%host.service.s%", "me": "%host.self%", "n": "%instance.self.service.s%"}
	for b.Loop() {
		f.Expand(config, "5000")
	}
}
