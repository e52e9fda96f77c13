package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// declared is a catalog without findings whose plugin types say what they take.
func declared() map[loom.EntityKind][]string {
	bodies := sound()
	bodies[loom.KindAutomatorType] = []string{`{"name":"shell","parameters":{"admin":{"fields":{
		"script":{"label":"S","type":"text"},"args":{"label":"A","type":"text"},"timeout_s":{"label":"T","type":"number","min":1,"max":60}},"required":[["script"]]}},
		"resourceTypes":{"scripts":{"format":"file"}}}`, `{"name":"two","actions":["START","stop"]}`,
		`{"name":"chef-solo","parameters":{"admin":{"fields":{"run_list":{"label":"Run list","type":"text"}},"required":[["run_list"]]}},
			"resourceTypes":{"cookbooks":{"format":"archive"},"roles":{"format":"file"}}}`,
		`{"name":"puppet","parameters":{"admin":{"fields":{"manifest":{"label":"M","type":"text","resourceType":"manifests"}}}},"resourceTypes":{"manifests":{"format":"file"}}}`}
	bodies[loom.KindProviderType] = append(bodies[loom.KindProviderType], `{"name":"rich","parameters":{
		"admin":{"fields":{"zone":{"label":"Z","type":"select","options":["a","b"]},"on":{"label":"O","type":"checkbox"},"user":{"label":"U","type":"text","pattern":"[a-z]+"},
			"pin":{"label":"P","type":"password","pattern":"[0-9]+"},"hook":{"label":"H","type":"resource","resourceType":"scripts"}}},
		"user":{"fields":{"region":{"label":"R","type":"text"}}}},"resourceTypes":{"scripts":{"format":"file"}}}`)
	bodies[loom.KindService] = []string{
		`{"name":"db","dependencies":{"provides":["store"]},"provisioner":{"actions":{"start":{"type":"shell","fields":{"script":"db.sh"}}}}}`,
		`{"name":"web","dependencies":{"runtime":{"requires":["store"],"uses":["db"]}},"follows":["store"],"links":[{"url":"http://%ip.self%/"}]}`,
	}
	return bodies
}

// TestFindingsOfFields breaks that catalog in one place each.
func TestFindingsOfFields(t *testing.T) {
	t.Parallel()
	action := func(fields string) string {
		return `{"name":"s","provisioner":{"actions":{"start":{"type":"shell","fields":{` + fields + `}}}}}`
	}
	provider := func(fields string) string {
		return `{"name":"p","providertype":"rich","provisioner":{` + fields + `}}`
	}
	child := func(rest string) string {
		return `{"name":"t","extends":{"name":"limited"},"defaults":{"services":["db"]}` + rest + `}`
	}
	chef := func(list string) string {
		return `{"name":"s","provisioner":{"actions":{"start":{"type":"chef-solo","fields":{"run_list":"` + list + `"}}}}}`
	}
	const at = "services/s /provisioner/actions/start/fields"
	runFindings(t, []findingCase{
		{"nothing", loom.KindHardwareType, `{"name":"small","providermap":{"lab":{"flavor":"s"}}}`, nil},
		{"no script", loom.KindService, action(`"args":"start"`), []string{"error incomplete " + at + " "}},
		{"an empty script", loom.KindService, action(`"script":""`), []string{"error incomplete " + at + " "}},
		{"a script", loom.KindService, action(`"script":"live.sh"`), nil},
		{"no such script", loom.KindService, action(`"script":"gone.sh"`), []string{"error dangling " + at + "/script gone.sh"}},
		{"a script that is shipped", loom.KindService, action(`"script":"coopr_service_manager.sh"`), nil},
		{"a command", loom.KindService, action(`"script":"systemctl"`), nil},
		{"a command with a dot", loom.KindService, action(`"script":"update-rc.d"`), nil},
		{"a path", loom.KindService, action(`"script":"/opt/x.sh"`), nil},
		{"a line", loom.KindService, action(`"script":"bash x.sh"`), nil},
		{"unknown field of an action", loom.KindService, action(`"script":"live.sh","arg":"x","colour":"red"`),
			[]string{"warning pointless " + at + "/arg arg", "warning pointless " + at + "/colour colour"}},
		{"time in words", loom.KindService, action(`"script":"live.sh","timeout_s":"long"`), []string{"warning incomplete " + at + "/timeout_s long"}},
		{"time too long", loom.KindService, action(`"script":"live.sh","timeout_s":61`), []string{"warning incomplete " + at + "/timeout_s 61"}},

		{"a run list", loom.KindService, chef("recipe[nginx::default], recipe[nginx], nginx::ssl@1.2.3 , role[web],role[db]"), nil},
		{"a run list of what is not there", loom.KindService, chef("recipe[apt], recipe[apt::x],role[mail], nginx"),
			[]string{"error dangling services/s /provisioner/actions/start/fields/run_list apt", "error dangling services/s /provisioner/actions/start/fields/run_list role[mail]"}},
		{"a run list that is none", loom.KindService, chef("recipe[, x y z; ,role[]"), nil},
		{"a run list of another automator", loom.KindService, action(`"script":"live.sh","run_list":"recipe[apt]"`), []string{"warning pointless " + at + "/run_list run_list"}},
		{"no such manifest", loom.KindService, `{"name":"s","provisioner":{"actions":{"start":{"type":"puppet","fields":{"manifest":"site.pp"}}}}}`, []string{"error dangling " + at + "/manifest site.pp"}},
		{"an action that the plugin has", loom.KindService, `{"name":"s","provisioner":{"actions":{"start":{"type":"two"},"stop":{"type":"two"}}}}`, nil},
		{"an action that it has not", loom.KindService, `{"name":"s","provisioner":{"actions":{"start":{"type":"two"},"configure":{"type":"two"}}}}`,
			[]string{"error dangling services/s /provisioner/actions/configure/type two"}},

		{"settings", loom.KindProvider, provider(`"zone":"a","on":"true","user":"root","hook":"live.sh","region":"x"`), nil},
		{"empty settings", loom.KindProvider, provider(`"zone":"","on":"","user":"","hook":"","pin":""`), nil},
		{"unknown setting", loom.KindProvider, provider(`"Zone":"a"`), []string{"warning pointless providers/p /provisioner/Zone Zone"}},
		{"outside of the choice", loom.KindProvider, provider(`"zone":"c"`), []string{"warning incomplete providers/p /provisioner/zone c"}},
		{"neither on nor off", loom.KindProvider, provider(`"on":7`), []string{"warning incomplete providers/p /provisioner/on 7"}},
		{"another form", loom.KindProvider, provider(`"user":"Root"`), []string{"warning incomplete providers/p /provisioner/user Root"}},
		{"secrets are not looked at", loom.KindProvider, provider(`"pin":"word"`), nil},
		{"no such resource", loom.KindProvider, provider(`"hook":"gone.sh"`), []string{"error dangling providers/p /provisioner/hook gone.sh"}},

		{"conflicts with itself", loom.KindService, `{"name":"s","dependencies":{"conflicts":["s"]}}`, []string{"warning pointless services/s /dependencies/conflicts/0 s"}},
		{"no other of its kind", loom.KindService, `{"name":"s","dependencies":{"provides":["x"],"conflicts":["x"],"install":{"requires":["x"]}}}`, nil},
		{"requires and conflicts", loom.KindService, `{"name":"s","dependencies":{"conflicts":["store"],"runtime":{"requires":["store"]}}}`,
			[]string{"error unsolvable services/s /dependencies/runtime/requires/0 store"}},

		{"a part that says too much", loom.KindPartialTemplate, `{"name":"p","constraints":{"size":{"max":3},"layout":{"mustcoexist":[["db","web"]]},"services":{"db":{}}},
			"administration":{"leaseduration":{"initial":1,"max":5},"onFailure":"keep"}}`, []string{
			"warning pointless partialtemplates/p /constraints/layout ", "warning pointless partialtemplates/p /constraints/services ", "warning pointless partialtemplates/p /constraints/size ",
			"warning pointless partialtemplates/p /administration/leaseduration ", "warning pointless partialtemplates/p /administration/onFailure "}},
		{"all limits of the parent", loom.KindTemplate, child(``), nil},
		{"limits of its own", loom.KindTemplate, child(`,"administration":{"leaseduration":{"initial":2,"max":9,"step":9}},"constraints":{"size":{"min":2,"max":9}}`), nil},
		{"a lease without the parent's limits", loom.KindTemplate, child(`,"administration":{"leaseduration":{"initial":2}}`),
			[]string{"warning pointless clustertemplates/t /administration/leaseduration limited"}},
		{"a size without the parent's limits", loom.KindTemplate, child(`,"constraints":{"size":{"min":3}}`), []string{"warning pointless clustertemplates/t /constraints/size limited"}},

		{"macros of services", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab","services":["db"],"config":{"a":"%host.service.web%","b":["%num.service.ghost%"]}}}`,
			[]string{"warning macro clustertemplates/t /defaults/config/b/0 %num.service.ghost%"}},
		{"macros of services that are kept out", loom.KindTemplate,
			`{"name":"t","defaults":{"provider":"lab","services":["db"],"config":{"a":"%host.service.web%","b":"%host.service.db%"}},"compatibility":{"services":["db"]}}`,
			[]string{"warning macro clustertemplates/t /defaults/config/a %host.service.web%"}},
		{"macros of a template's links", loom.KindTemplate,
			`{"name":"t","defaults":{"provider":"lab","services":["db"]},"links":[{"url":"http://%ip.acces_v4.service.db[0]%/"},{"url":"http://%host.self%/%host.service.ghost%"},{"url":"%ip.v6.service.db[0]%"}]}`,
			[]string{"warning macro clustertemplates/t /links/0/url %ip.acces_v4.service.db[0]%", "warning macro clustertemplates/t /links/1/url %host.self%",
				"warning macro clustertemplates/t /links/1/url %host.service.ghost%"}},
		{"macros of nodes that there cannot be", loom.KindTemplate,
			`{"name":"t","defaults":{"provider":"lab","services":["db","cache"],"config":{"a":"%host.service.db[2]%","b":"%host.service.db[1]%","c":"%ip.service.cache[1]%"}},"constraints":{"size":{"max":2},"services":{"cache":{"quantities":{"max":1}}}}}`,
			[]string{"warning macro clustertemplates/t /defaults/config/a %host.service.db[2]%", "warning macro clustertemplates/t /defaults/config/c %ip.service.cache[1]%"}},
		{"macros of a service", loom.KindService,
			`{"name":"s","dependencies":{"conflicts":["store"]},"defaultConfig":{"a":"%host.service.s% %host.service.web%","b":"%host.service.ghost%","c":["%host.service.db%"],"d":"%num.service.store%"},"links":[{"url":"http://%ip.self%/%instance.self.service.gost%"}]}`,
			[]string{"warning macro services/s /defaultConfig/b %host.service.ghost%", "warning macro services/s /defaultConfig/c/0 %host.service.db%",
				"warning macro services/s /defaultConfig/d %num.service.store%", "warning macro services/s /links/0/url %instance.self.service.gost%"}},
		{"macros of a part", loom.KindPartialTemplate, `{"name":"p","defaults":{"config":{"a":"%host.service.web%","b":"%host.service.ghost%"}}}`,
			[]string{"warning macro partialtemplates/p /defaults/config/b %host.service.ghost%"}},
		{"macros that services and parts bring", loom.KindTemplate,
			`{"name":"t","includes":[{"name":"peers"}],"defaults":{"provider":"lab","services":["db","front"]},"compatibility":{"services":["db","front"]}}`,
			[]string{"warning macro clustertemplates/t /defaults/services/1 %host.service.web%", "warning macro clustertemplates/t /includes/0/name %join(host.service.web,';')%"}},
		{"macros that services and parts bring, which may be there", loom.KindTemplate,
			`{"name":"t","includes":[{"name":"peers"}],"defaults":{"provider":"lab","services":["db","front"]},"compatibility":{"services":["db","front","web"]}}`, nil},
		{"macros of services that children bring", loom.KindTemplate,
			`{"name":"base","includes":[{"name":"locked"}],"defaults":{"provider":"lab","config":{"a":"%host.service.web%"}},"compatibility":{"services":["db"]}}`,
			[]string{"error unsolvable clustertemplates/site /defaults 2"}},
	})
}

type findingCase struct {
	name string
	kind loom.EntityKind
	body string
	want []string // severity code kind/name field value
}

func runFindings(t *testing.T, cases []findingCase) {
	t.Helper()
	for _, c := range cases {
		bodies := declared()
		bodies[loom.KindTemplate] = append(bodies[loom.KindTemplate],
			`{"name":"limited","defaults":{"provider":"lab"},"administration":{"leaseduration":{"initial":1,"max":5,"step":2}},"constraints":{"size":{"min":2,"max":4}}}`,
			`{"name":"heir","extends":{"name":"limited"},"defaults":{"services":["db"]}}`)
		bodies[loom.KindService] = append(bodies[loom.KindService], `{"name":"cache"}`, `{"name":"front","defaultConfig":{"up":"%host.service.web%"}}`)
		bodies[loom.KindPartialTemplate] = append(bodies[loom.KindPartialTemplate], `{"name":"peers","defaults":{"config":{"peers":"%join(host.service.web,';')%"}}}`)
		f := catalogOf(t, bodies)
		for _, ref := range []loom.ResourceRef{
			{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "db.sh"}, {Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "live.sh"},
			{Kind: "providertypes", Plugin: "rich", Type: "scripts", Name: "live.sh"},
			{Kind: "automatortypes", Plugin: "chef-solo", Type: "cookbooks", Name: "nginx"},
			{Kind: "automatortypes", Plugin: "chef-solo", Type: "roles", Name: "web.json"}, {Kind: "automatortypes", Plugin: "chef-solo", Type: "roles", Name: "db.rb"},
		} {
			f.resources[ref] = true
		}
		entry, err := Decode(c.kind, []byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		entry.Meta().Version = 7
		f.add(c.kind, entry)
		found, err := f.find(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range found {
			got = append(got, fmt.Sprintf("%s %s %s/%s %s %s", x.Severity, x.Code, x.Kind, x.Name, x.Field, x.Value))
			if !strings.HasSuffix(x.Message, ".") || !strings.HasSuffix(x.Remedy, ".") {
				t.Errorf("%s: incomplete finding %+v", c.name, x)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// What a template loses of its parent's limits, and of those of a part, is named.
func TestLostLimitsAreNamed(t *testing.T) {
	t.Parallel()
	bodies := sound()
	bodies[loom.KindPartialTemplate] = append(bodies[loom.KindPartialTemplate], `{"name":"part","constraints":{"size":{"max":3}}}`)
	bodies[loom.KindTemplate] = append(bodies[loom.KindTemplate],
		`{"name":"limited","defaults":{"provider":"lab"},"administration":{"leaseduration":{"initial":"1h","max":"2d","step":"1d"}}}`,
		`{"name":"between","extends":{"name":"limited"},"defaults":{"provider":"lab"}}`,
		`{"name":"x","extends":{"name":"between"},"includes":[{"name":"part"}],"defaults":{"services":["db"]},"administration":{"leaseduration":{"initial":"2h"}}}`)
	found, err := catalogOf(t, bodies).find(t.Context(), func(kind loom.EntityKind, name string) bool { return name == "x" })
	if err != nil || len(found) != 2 || found[0].Field != "/includes/0/name" || found[0].Value != "part" ||
		found[1].Message != "The lease is replaced whole: maximum (2 days) and step (1 day) of the template “limited” do not apply." {
		t.Errorf("found %+v, %v", found, err)
	}
}

// What findings say to people has the labels of fields, never their names on the wire.
func TestFindingsSpeakOfLabels(t *testing.T) {
	t.Parallel()
	bodies := sound()
	bodies[loom.KindProviderType] = []string{`{"name":"cloud","parameters":{"admin":{"fields":{"api_user":{"label":"User","type":"text"},"api_secret":{"label":"Secret","type":"password"},
		"api_zone":{"label":"Zone","type":"select","options":["a"]}},"required":[["api_user","api_secret"]]}}}`}
	bodies[loom.KindProvider] = []string{`{"name":"lab","providertype":"cloud","provisioner":{"api_zone":"z"}}`}
	bodies[loom.KindAutomatorType] = []string{`{"name":"shell","parameters":{"admin":{"fields":{"chef_license":{"label":"License","type":"text"}},"required":[["chef_license"]]}}}`}
	bodies[loom.KindHardwareType] = append(bodies[loom.KindHardwareType], `{"name":"lone"}`)
	bodies[loom.KindPartialTemplate] = append(bodies[loom.KindPartialTemplate], `{"name":"p","constraints":{"layout":{"mustcoexist":[["db","web"]]}},"administration":{"leaseduration":{"initial":1,"max":5},"onFailure":"keep"}}`)
	found, err := catalogOf(t, bodies).find(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, f.Message)
		for _, name := range []string{"api_", "chef_", "provisioner", "providermap", "leaseduration", "onFailure", "mustcoexist", "()"} {
			if strings.Contains(f.Message, name) {
				t.Errorf("%q in %q", name, f.Message)
			}
		}
	}
	for _, want := range []string{"set “Secret” and “User”", "The field “Zone” cannot be “z”", "set “License”", "a lease", "what happens on failure"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(all, "\n"))
		}
	}
}

// A file is named by its name as a word only.
func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "web.sh": true, ". ./web.sh\n": true, `sh "$here/web.sh" start`: true, "see web.sh.": true, "web.sh.bak": false, "my-web.sh": false, "old.web.sh": false,
		"web.shell": false, "web.shx web.sh": true, "aweb.sh,web.sh": true, "recipe[web.sh::x]": true, "üweb.sh": false,
	} {
		if got := loom.Mentions(text, "web.sh"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
