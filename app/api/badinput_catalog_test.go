package api

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// catalogPath is where entries of a kind are.
func catalogPath(kind loom.EntityKind) string {
	if kind.Global() {
		return "/v2/plugins/" + string(kind)
	}
	return "/v2/" + string(kind)
}

// TestBadBaseFields breaks the rules that all kinds share.
func TestBadBaseFields(t *testing.T) {
	t.Parallel()
	var cases []badInput
	for _, kind := range loom.EntityKinds {
		at := catalogPath(kind) + "/x"
		for _, c := range []struct{ name, body, field string }{
			{"no body", ``, ""},
			{"blanks", " \n ", ""},
			{"null", `null`, ""},
			{"array", `[{"name":"x"}]`, ""},
			{"text", `"x"`, ""},
			{"number", `1`, ""},
			{"cut off", `{"name":"x"`, ""},
			{"two documents", `{"name":"x"} {}`, ""},
			{"comma", `{"name":"x",}`, ""},
			{"no UTF-8", "{\"name\":\"\xff\"}", ""},
			{"nameless", `{}`, "name"},
			{"null name", `{"name":null}`, "name"},
			{"empty name", `{"name":""}`, "name"},
			{"blank in the name", `{"name":"a b"}`, "name"},
			{"slash in the name", `{"name":"a/b"}`, "name"},
			{"umlaut in the name", `{"name":"ä"}`, "name"},
			{"line end in the name", `{"name":"a\n"}`, "name"},
			{"long name", `{"name":"` + strings.Repeat("x", 256) + `"}`, "name"},
			{"name is an object", `{"name":{"a":1}}`, "name"},
			{"name is an array", `{"name":["x"]}`, "name"},
			{"another name", `{"name":"y"}`, "name"},
			{"NUL in the label", `{"name":"x","label":"a\u0000b"}`, "label"},
			{"label is an object", `{"name":"x","label":{}}`, "label"},
			{"description is an array", `{"name":"x","description":[]}`, "description"},
			{"long label", `{"name":"x","label":"` + strings.Repeat("ä", 256) + `"}`, "label"},
			{"icon is an object", `{"name":"x","icon":{}}`, "icon"},
			{"icon that runs a script", `{"name":"x","icon":"javascript:alert(1)"}`, "icon"},
			{"icon that hides a script", `{"name":"x","icon":" java\tScript:alert(1)"}`, "icon"},
			{"icon that is a page", `{"name":"x","icon":"data:text/html,x"}`, "icon"},
			{"icon in a file", `{"name":"x","icon":"file:///etc/passwd"}`, "icon"},
			{"version in words", `{"name":"x","version":"two"}`, "version"},
			{"version with fraction", `{"name":"x","version":1.5}`, "version"},
			{"version is a list", `{"name":"x","version":[1]}`, "version"},
			{"deprecated in words", `{"name":"x","deprecated":"yes"}`, "deprecated"},
			{"deprecated as a number", `{"name":"x","deprecated":1}`, "deprecated"},
		} {
			body := c.body
			if kind == loom.KindProvider { // which needs a type, too
				body = strings.Replace(body, `{"name"`, `{"providertype":"fake","name"`, 1)
				if c.name == "nameless" {
					body = `{"providertype":"fake"}`
				}
			}
			cases = append(cases, badInput{string(kind) + ": " + c.name, put, at, body, 400, c.field})
		}
		cases = append(cases,
			badInput{string(kind) + ": version 0", get, at + "/0", ``, 400, "version"},
			badInput{string(kind) + ": not there", get, at, ``, 404, ""},
			badInput{string(kind) + ": delete no version", del, at + "/-1", ``, 400, "version"},
			badInput{string(kind) + ": list by nothing", get, catalogPath(kind) + "?sort=colour", ``, 400, "sort"},
			badInput{string(kind) + ": list none", get, catalogPath(kind) + "?limit=0", ``, 400, "limit"},
			badInput{string(kind) + ": perhaps deprecated", get, catalogPath(kind) + "?deprecated=perhaps", ``, 400, "deprecated"},
			badInput{string(kind) + ": cursor", get, catalogPath(kind) + "?after=nonsense", ``, 400, "after"},
			badInput{string(kind) + ": both ways", get, catalogPath(kind) + "?after=a&before=b", ``, 400, "before"},
		)
	}
	runBadInputs(t, cases)
}

// TestBadCatalogInput breaks the rules of each kind.
func TestBadCatalogInput(t *testing.T) {
	t.Parallel()
	var cases []badInput
	add := func(kind loom.EntityKind, name, rest string, fields ...string) {
		cases = append(cases, badInput{name, put, catalogPath(kind) + "/x", `{"name":"x",` + rest + `}`, 400, strings.Join(fields, "|")})
	}
	for _, kind := range []loom.EntityKind{loom.KindProviderType, loom.KindAutomatorType} {
		field := func(members string) string { return `"parameters":{"admin":{"fields":{"f":{` + members + `}}}}` }
		add(kind, "parameters are a list", `"parameters":[]`, "parameters")
		add(kind, "unknown group", `"parameters":{"root":{}}`, "parameters.root")
		add(kind, "group is a list", `"parameters":{"admin":[]}`, "parameters.admin")
		add(kind, "fields are a list", `"parameters":{"user":{"fields":[]}}`, "parameters.user.fields")
		add(kind, "field is a text", `"parameters":{"user":{"fields":{"f":"text"}}}`, "parameters.user.fields.f")
		add(kind, "no label", field(`"type":"text"`), "parameters.admin.fields.f.label")
		add(kind, "empty label", field(`"label":"","type":"text"`), "parameters.admin.fields.f.label")
		add(kind, "no type", field(`"label":"F"`), "parameters.admin.fields.f.type")
		add(kind, "type is an object", field(`"label":"F","type":{}`), "parameters.admin.fields.f.type")
		add(kind, "tip is a list", field(`"label":"F","type":"text","tip":[]`), "parameters.admin.fields.f.tip")
		add(kind, "override in words", field(`"label":"F","type":"text","override":"often"`), "parameters.admin.fields.f.override")
		add(kind, "sensitive as a number", field(`"label":"F","type":"text","sensitive":1`), "parameters.admin.fields.f.sensitive")
		add(kind, "options are a text", field(`"label":"F","type":"select","options":"a"`), "parameters.admin.fields.f.options")
		add(kind, "option is an object", field(`"label":"F","type":"select","options":["a",{}]`), "parameters.admin.fields.f.options[1]")
		add(kind, "least in words", field(`"label":"F","type":"text","min":"few"`), "parameters.admin.fields.f.min")
		add(kind, "required is a text", `"parameters":{"admin":{"required":"f"}}`, "parameters.admin.required")
		add(kind, "required holds a text", `"parameters":{"admin":{"required":["f"]}}`, "parameters.admin.required[0]")
		add(kind, "required names nothing", `"parameters":{"admin":{"fields":{"f":{"label":"F","type":"text"}},"required":[["f"],["g"]]}}`, "parameters.admin.required[1]")
		add(kind, "resource types are a list", `"resourceTypes":[]`, "resourceTypes")
		add(kind, "no format", `"resourceTypes":{"r":{}}`, "resourceTypes.r.format")
		add(kind, "unknown format", `"resourceTypes":{"r":{"format":"zip"}}`, "resourceTypes.r.format")
		add(kind, "format in capitals", `"resourceTypes":{"r":{"format":"FILE"}}`, "resourceTypes.r.format")
		add(kind, "permissions of an archive", `"resourceTypes":{"r":{"format":"archive","permissions":"600"}}`, "resourceTypes.r.permissions")
		add(kind, "two digits", `"resourceTypes":{"r":{"format":"file","permissions":"60"}}`, "resourceTypes.r.permissions")
		add(kind, "five digits", `"resourceTypes":{"r":{"format":"file","permissions":"00600"}}`, "resourceTypes.r.permissions")
		add(kind, "no octal digit", `"resourceTypes":{"r":{"format":"file","permissions":"689"}}`, "resourceTypes.r.permissions")
		add(kind, "permissions in letters", `"resourceTypes":{"r":{"format":"file","permissions":"rwx"}}`, "resourceTypes.r.permissions")
	}

	add(loom.KindProvider, "no type", `"provisioner":{}`, "providertype")
	add(loom.KindProvider, "empty type", `"providertype":""`, "providertype")
	add(loom.KindProvider, "type is an object", `"providertype":{}`, "providertype")
	add(loom.KindProvider, "settings are a list", `"providertype":"fake","provisioner":[]`, "provisioner")
	add(loom.KindProvider, "settings are a text", `"providertype":"fake","provisioner":"x"`, "provisioner")
	add(loom.KindProvider, "a number that cannot be kept", `"providertype":"fake","provisioner":{"n":1e999}`, "provisioner.n")
	add(loom.KindProvider, "NUL in a setting", `"providertype":"fake","provisioner":{"a":["\u0000"]}`, "provisioner.a[0]")
	add(loom.KindProvider, "NUL in a key", `"providertype":"fake","provisioner":{"a\u0000":1}`, "provisioner")

	for _, kind := range []loom.EntityKind{loom.KindHardwareType, loom.KindImageType} {
		add(kind, "map is a list", `"providermap":[]`, "providermap")
		add(kind, "map is a text", `"providermap":"lab"`, "providermap")
		add(kind, "entry is a text", `"providermap":{"lab":"small"}`, "providermap.lab")
		add(kind, "entry is a list", `"providermap":{"lab":[]}`, "providermap.lab")
		add(kind, "value is an object", `"providermap":{"lab":{"flavor":{}}}`, "providermap.lab.flavor")
		add(kind, "value is a list", `"providermap":{"lab":{"image":["i"]},"far":{"image":[]}}`, "providermap.lab.image", "providermap.far.image")
	}

	action := func(key, members string) string {
		return `"provisioner":{"actions":{"` + key + `":` + members + `}}`
	}
	add(loom.KindService, "dependencies are a list", `"dependencies":[]`, "dependencies")
	add(loom.KindService, "provides is a text", `"dependencies":{"provides":"p"}`, "dependencies.provides")
	add(loom.KindService, "provides an object", `"dependencies":{"provides":["p",{}]}`, "dependencies.provides[1]")
	add(loom.KindService, "conflicts are an object", `"dependencies":{"conflicts":{}}`, "dependencies.conflicts")
	add(loom.KindService, "install is a list", `"dependencies":{"install":[]}`, "dependencies.install")
	add(loom.KindService, "install requires a text", `"dependencies":{"install":{"requires":"a"}}`, "dependencies.install.requires")
	add(loom.KindService, "install uses an object", `"dependencies":{"install":{"uses":[{}]}}`, "dependencies.install.uses[0]")
	add(loom.KindService, "runtime is a text", `"dependencies":{"runtime":"x"}`, "dependencies.runtime")
	add(loom.KindService, "runtime requires a list in a list", `"dependencies":{"runtime":{"requires":[["a"]]}}`, "dependencies.runtime.requires[0]")
	add(loom.KindService, "runtime uses a number of lists", `"dependencies":{"runtime":{"uses":7}}`, "dependencies.runtime.uses")
	add(loom.KindService, "unknown scope", `"dependencies":{"install":{"scope":"rack"}}`, "dependencies.install.scope")
	add(loom.KindService, "provisioner is a list", `"provisioner":[]`, "provisioner")
	add(loom.KindService, "actions are a list", `"provisioner":{"actions":[]}`, "provisioner.actions")
	add(loom.KindService, "action is a text", action("start", `"shell"`), "provisioner.actions.start")
	add(loom.KindService, "unknown action", action("dance", `{"type":"shell"}`), "provisioner.actions.dance")
	add(loom.KindService, "action in capitals", action("START", `{"type":"shell"}`), "provisioner.actions.START")
	add(loom.KindService, "empty action", action("", `{"type":"shell"}`), "provisioner.actions.")
	for _, of := range []string{"create", "confirm", "bootstrap", "delete"} {
		add(loom.KindService, "action of nodes: "+of, action(of, `{"type":"shell"}`), "provisioner.actions."+of)
	}
	add(loom.KindService, "action without type", action("start", `{"fields":{}}`), "provisioner.actions.start.type")
	add(loom.KindService, "action with an empty type", action("stop", `{"type":""}`), "provisioner.actions.stop.type")
	add(loom.KindService, "action whose type is a list", action("stop", `{"type":["shell"]}`), "provisioner.actions.stop.type")
	add(loom.KindService, "fields are a list", action("start", `{"type":"shell","fields":[]}`), "provisioner.actions.start.fields")
	add(loom.KindService, "field is an object", action("start", `{"type":"shell","fields":{"args":{}}}`), "provisioner.actions.start.fields.args")
	add(loom.KindService, "follows a text", `"follows":"a"`, "follows")
	add(loom.KindService, "follows an object", `"follows":[{}]`, "follows[0]")
	add(loom.KindService, "shrinks sometimes", `"shrink":"sometimes"`, "shrink")
	add(loom.KindService, "config is a list", `"defaultConfig":[]`, "defaultConfig")
	add(loom.KindService, "two at once", `"shrink":"no","follows":1`, "shrink", "follows")

	for _, kind := range []loom.EntityKind{loom.KindService, loom.KindTemplate, loom.KindPartialTemplate} {
		add(kind, "links are an object", `"links":{}`, "links")
		add(kind, "link is a text", `"links":["http://x"]`, "links[0]")
		add(kind, "link without URL", `"links":[{"url":"http://x"},{"label":"l"}]`, "links[1].url")
		add(kind, "link with an empty URL", `"links":[{"url":""}]`, "links[0].url")
		add(kind, "URL is an object", `"links":[{"url":{}}]`, "links[0].url")
		add(kind, "label of a link is a list", `"links":[{"url":"http://x","label":[]}]`, "links[0].label")
		add(kind, "link that runs a script", `"links":[{"url":"javascript:alert(1)"}]`, "links[0].url")
	}

	for _, kind := range []loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate} {
		add(kind, "defaults are a list", `"defaults":[]`, "defaults")
		add(kind, "services are a text", `"defaults":{"services":"web"}`, "defaults.services")
		add(kind, "service is a list", `"defaults":{"services":["a",["b"]]}`, "defaults.services[1]")
		add(kind, "service without name", `"defaults":{"services":[{"config":{}}]}`, "defaults.services[0]")
		add(kind, "config of a service is a list", `"defaults":{"services":[{"name":"a","config":[]}]}`, "defaults.services[0]")
		add(kind, "provider is an object", `"defaults":{"provider":{}}`, "defaults.provider")
		add(kind, "hardware type is a list", `"defaults":{"hardwaretype":[]}`, "defaults.hardwaretype")
		add(kind, "image type is an object", `"defaults":{"imagetype":{}}`, "defaults.imagetype")
		add(kind, "suffix is a list", `"defaults":{"dnsSuffix":[]}`, "defaults.dnsSuffix")
		add(kind, "config is a text", `"defaults":{"config":"x"}`, "defaults.config")
		add(kind, "NUL in the config", `"defaults":{"config":{"a":{"b":"\u0000"}}}`, "defaults.config.a.b")
		add(kind, "compatibility is a list", `"compatibility":[]`, "compatibility")
		add(kind, "compatible hardware is a text", `"compatibility":{"hardwaretypes":"small"}`, "compatibility.hardwaretypes")
		add(kind, "compatible image is an object", `"compatibility":{"imagetypes":[{}]}`, "compatibility.imagetypes[0]")
		add(kind, "compatible service is a list", `"compatibility":{"services":[[]]}`, "compatibility.services[0]")
		add(kind, "constraints are a list", `"constraints":[]`, "constraints")
		add(kind, "size is a number", `"constraints":{"size":3}`, "constraints.size")
		add(kind, "size 0", `"constraints":{"size":{"min":0}}`, "constraints.size.min")
		add(kind, "negative size", `"constraints":{"size":{"min":-1}}`, "constraints.size.min")
		add(kind, "size in words", `"constraints":{"size":{"min":"some"}}`, "constraints.size.min")
		add(kind, "size with fraction", `"constraints":{"size":{"max":2.5}}`, "constraints.size.max")
		add(kind, "size beyond all", `"constraints":{"size":{"max":99999999999}}`, "constraints.size.max")
		add(kind, "no size at all", `"constraints":{"size":{"max":0}}`, "constraints.size.max")
		add(kind, "sizes turned around", `"constraints":{"size":{"min":5,"max":4}}`, "constraints.size.max")
		add(kind, "layout is a list", `"constraints":{"layout":[]}`, "constraints.layout")
		add(kind, "must-coexist is an object", `"constraints":{"layout":{"mustcoexist":{}}}`, "constraints.layout.mustcoexist")
		add(kind, "must-coexist holds a text", `"constraints":{"layout":{"mustcoexist":["a"]}}`, "constraints.layout.mustcoexist[0]")
		add(kind, "can't-coexist holds an object", `"constraints":{"layout":{"cantcoexist":[["a",{}]]}}`, "constraints.layout.cantcoexist[0][1]")
		add(kind, "constrained services are a list", `"constraints":{"services":[]}`, "constraints.services")
		add(kind, "constraint of a service is a number", `"constraints":{"services":{"a":1}}`, "constraints.services.a")
		add(kind, "types of a service are a text", `"constraints":{"services":{"a":{"hardwaretypes":"x","imagetypes":"y"}}}`,
			"constraints.services.a.hardwaretypes", "constraints.services.a.imagetypes")
		add(kind, "quantities are a number", `"constraints":{"services":{"a":{"quantities":2}}}`, "constraints.services.a.quantities")
		add(kind, "negative quantity", `"constraints":{"services":{"a":{"quantities":{"min":-1}}}}`, "constraints.services.a.quantities.min")
		add(kind, "quantity in words", `"constraints":{"services":{"a":{"quantities":{"max":"many"}}}}`, "constraints.services.a.quantities.max")
		add(kind, "quantities turned around", `"constraints":{"services":{"a":{"quantities":{"min":2,"max":1}}}}`, "constraints.services.a.quantities.max")
		add(kind, "administration is a list", `"administration":[]`, "administration")
		add(kind, "lease is a number", `"administration":{"leaseduration":5}`, "administration.leaseduration")
		for _, lease := range []string{`-1`, `1.5`, `""`, `"1w"`, `"1.5h"`, `"-1d"`, `"d"`, `"1 h"`, `{}`, `true`, `"99999999999999999d"`} {
			add(kind, "initial lease "+lease, `"administration":{"leaseduration":{"initial":`+lease+`}}`, "administration.leaseduration.initial")
		}
		add(kind, "longest lease is negative", `"administration":{"leaseduration":{"initial":1,"max":-5}}`, "administration.leaseduration.max")
		add(kind, "step in words", `"administration":{"leaseduration":{"step":"day"}}`, "administration.leaseduration.step")
		add(kind, "initial beyond the longest", `"administration":{"leaseduration":{"initial":"2d","max":"1d"}}`, "administration.leaseduration.initial")
		add(kind, "for ever beyond the longest", `"administration":{"leaseduration":{"initial":0,"max":"1d"}}`, "administration.leaseduration.initial")
		add(kind, "unknown way to fail", `"administration":{"onFailure":"panic"}`, "administration.onFailure")
	}
	add(loom.KindTemplate, "extends a text", `"extends":"parent"`, "extends")
	add(loom.KindTemplate, "extends nothing", `"extends":{}`, "extends.name")
	add(loom.KindTemplate, "extends a list", `"extends":{"name":[]}`, "extends.name")
	add(loom.KindTemplate, "includes an object", `"includes":{}`, "includes")
	add(loom.KindTemplate, "includes a text", `"includes":["part"]`, "includes[0]")
	add(loom.KindTemplate, "includes nothing", `"includes":[{"name":"a"},{}]`, "includes[1].name")
	add(loom.KindTemplate, "preferences are a list", `"preferences":[]`, "preferences")
	add(loom.KindTemplate, "prefers a text", `"preferences":{"hardwaretypes":"small"}`, "preferences.hardwaretypes")
	add(loom.KindPartialTemplate, "immutable in words", `"immutable":"always"`, "immutable")
	add(loom.KindPartialTemplate, "immutable as a number", `"immutable":1`, "immutable")

	resource := "/v2/plugins/automatortypes/shell/scripts"
	cases = append(cases,
		badInput{"name of a resource", post, resource + "/a%20b", "x", 400, "name"},
		badInput{"long name of a resource", post, resource + "/" + strings.Repeat("x", 256), "x", 400, "name"},
		badInput{"unknown resource type", post, "/v2/plugins/automatortypes/shell/cookbooks/x", "x", 404, ""},
		badInput{"resource of an unknown plugin", post, "/v2/plugins/automatortypes/none/scripts/x", "x", 404, ""},
		badInput{"resource type of an unknown plugin", get, "/v2/plugins/providertypes/none/keys", "", 404, ""},
		badInput{"status of resources", get, resource + "?status=new", "", 400, "status"},
		badInput{"status of versions", get, resource + "/x?status=2", "", 400, "status"},
		badInput{"stage no number", post, resource + "/x/versions/one/stage", "", 400, "v"},
		badInput{"stage version 0", post, resource + "/x/versions/0/stage", "", 400, "v"},
		badInput{"stage nothing", post, resource + "/x/versions/1/stage", "", 404, ""},
		badInput{"recall no number", post, resource + "/x/versions/1.0/recall", "", 400, "v"},
		badInput{"recall nothing", post, resource + "/x/versions/7/recall", "", 404, ""},
		badInput{"release no number", post, resource + "/x/versions/x/release", "", 400, "v"},
		badInput{"release nothing", post, resource + "/x/versions/7/release", "", 404, ""},
		badInput{"release neither true nor false", post, resource + "/x/versions?release=1", "x", 400, "release"},
		badInput{"delete no number", del, resource + "/x/versions/-3", "", 400, "v"},
		badInput{"delete no version", del, resource + "/x/versions/3", "", 404, ""},

		badInput{"stored already", post, "/v2/services", `{"name":"web"}`, 409, ""},
		badInput{"stored already, and its lease is wrong", post, "/v2/clustertemplates", `{"name":"site","administration":{"leaseduration":{"initial":0,"max":5}}}`, 409, ""},
		badInput{"stored already, and more is wrong", post, "/v2/clustertemplates", `{"name":"site","links":[{}],"administration":{"leaseduration":{"initial":0,"max":5}}}`, 400,
			"links[0].url|administration.leaseduration.initial"},
		badInput{"new, and its lease is wrong", post, "/v2/clustertemplates", `{"name":"new","administration":{"leaseduration":{"initial":0,"max":5}}}`, 400, "administration.leaseduration.initial"},
		badInput{"versions of nothing", get, "/v2/services/none/versions", "", 404, ""},
		badInput{"uses of nothing", get, "/v2/services/none/uses", "", 404, ""},
		badInput{"compare nothing", get, "/v2/services/none/compare", "", 404, ""},
		badInput{"compare the only one", get, "/v2/services/web/compare", "", 404, ""},
		badInput{"compare from no number", get, "/v2/services/web/compare?from=one", "", 400, "from"},
		badInput{"compare with what is not there", get, "/v2/services/web/compare?from=1&to=8", "", 404, ""},
		badInput{"compare with a parameter too many", get, "/v2/services/web/compare?with=1", "", 400, "with"},
		badInput{"check of no kind", get, "/v2/check?kind=clusters", "", 400, "kind"},
		badInput{"check of no severity", get, "/v2/check?severity=info", "", 400, "severity"},
		badInput{"resolve nothing", post, "/v2/resolve", "", 400, ""},
		badInput{"resolve without a name", post, "/v2/resolve", `{"defaults":{"provider":"lab","services":["web"]}}`, 400, "name"},
		badInput{"resolve without a parent", post, "/v2/resolve", `{"name":"x","extends":{"name":"none"}}`, 404, "extends.name"},
		badInput{"resolve a circle", post, "/v2/resolve", `{"name":"x","extends":{"name":"x"}}`, 400, "extends.name"},
		badInput{"resolve to no cluster", post, "/v2/resolve", `{"name":"x"}`, 400, "defaults.services|defaults.provider"},
		badInput{"resolve with a bad suffix", post, "/v2/resolve", `{"name":"x","extends":{"name":"site"},"defaults":{"dnsSuffix":"-.x"}}`, 400, "defaults.dnsSuffix"},
		badInput{"import nothing", post, "/v2/import", "", 400, ""},
		badInput{"import null", post, "/v2/import", "null", 400, ""},
		badInput{"import a list", post, "/v2/import", "[]", 400, ""},
		badInput{"import services as an object", post, "/v2/import", `{"services":{}}`, 400, "services"},
		badInput{"import a broken archive", post, "/v2/import", "\x1f\x8bnonsense", 400, ""},
		badInput{"import in another way", post, "/v2/import?mode=overwrite", "{}", 400, "mode"},
		badInput{"import a little", post, "/v2/import?dryRun=a-little", "{}", 400, "dryRun"},
		badInput{"import of twins", post, "/v2/import?mode=merge", `{"services":[{"name":"a"},{"name":"a"}]}`, 400, "services[1].name"},
		badInput{"import of what has no name", post, "/v2/import", `{"providers":[{"providertype":"fake"}]}`, 400, "providers[0].name"},
		badInput{"import of several mistakes", post, "/v2/import", `{"providers":[{"name":"p"}],"services":[{"name":"s","links":1},{"name":"ok"}]}`, 400, "providers[0].providertype|services[0].links"},
		badInput{"import with a slip in a parameter", post, "/v2/import?dryrun=true", `{"services":[]}`, 400, "dryrun"},
		badInput{"import with slips in two", post, "/v2/import?Mode=merge&dry=1", `{"services":[]}`, 400, "Mode|dry"},
		badInput{"import of unknown kinds", post, "/v2/import", `{"clustertemplate":[],"services":[],"version":1}`, 400, "clustertemplate|version"},
		badInput{"replace all by nothing", post, "/v2/import", `{}`, 400, ""},
		badInput{"replace all by nulls", post, "/v2/import?mode=replace", `{"services":null}`, 400, ""},
		badInput{"try to replace all by nothing", post, "/v2/import?dryRun=true", `{}`, 400, ""},
	)
	runBadInputs(t, cases)
}
