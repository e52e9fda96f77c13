package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestBadInputOfClusters holds every body that makes or changes clusters against
// what people and programs get wrong in it.
func TestBadInputOfClusters(t *testing.T) {
	t.Parallel()
	const (
		clusters, calm, busy, nobody = "/v2/clusters", "/v2/clusters/1", "/v2/clusters/2", "/v2/clusters/999"
		previews                     = "/v2/previews"
	)
	with := func(change string) string {
		return `{"name":"x","clusterTemplate":"site","numMachines":3` + change + `}`
	}
	long := strings.Repeat("x", 1001)
	deep := strings.Repeat(`{"x":`, 120) + "1" + strings.Repeat("}", 120)
	var labels []string
	for i := range 51 {
		labels = append(labels, fmt.Sprintf(`"k%d":"v"`, i))
	}
	many := "{" + strings.Join(labels, ",") + "}"
	cases := []badInput{
		// Create.
		{"empty", post, clusters, ``, 400, ""},
		{"null", post, clusters, `null`, 400, ""},
		{"an array", post, clusters, `[]`, 400, ""},
		{"cut off", post, clusters, `{"name":`, 400, ""},
		{"nothing given", post, clusters, `{}`, 400, "name|clusterTemplate|numMachines"},
		{"name with blanks", post, clusters, `{"name":"a b","clusterTemplate":"site","numMachines":3}`, 400, "name"},
		{"name too long", post, clusters, `{"name":"` + long + `","clusterTemplate":"site","numMachines":3}`, 400, "name"},
		{"name of umlauts", post, clusters, `{"name":"ä","clusterTemplate":"site","numMachines":3}`, 400, "name"},
		{"name is an object", post, clusters, `{"name":{},"clusterTemplate":"site","numMachines":3}`, 400, "name"},
		{"no template of that name", post, clusters, `{"name":"x","clusterTemplate":"none","numMachines":3}`, 404, "clusterTemplate"},
		{"machines in words", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":"many"}`, 400, "numMachines"},
		{"half a machine", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":2.5}`, 400, "numMachines"},
		{"no machines", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":0}`, 400, "numMachines"},
		{"fewer than none", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":-3}`, 400, "numMachines"},
		{"too many machines", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":51}`, 400, "numMachines"},
		{"beyond all integers", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":99999999999999999999}`, 400, "numMachines"},
		{"more than the template allows", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":6}`, 400, ""},
		{"no layout", post, clusters, `{"name":"x","clusterTemplate":"site","numMachines":1}`, 400, ""},
		{"no provider of that name", post, clusters, with(`,"provider":"none"`), 404, "provider"},
		{"unknown service", post, clusters, with(`,"services":["web","ghost"]`), 400, ""},
		{"services not in a list", post, clusters, with(`,"services":"web"`), 400, "services"},
		{"a service that is an object", post, clusters, with(`,"services":[{}]`), 400, "services[0]"},
		{"unknown hardware", post, clusters, with(`,"hardwaretype":"huge"`), 400, ""},
		{"unknown image", post, clusters, with(`,"imagetype":"win"`), 400, ""},
		{"bad suffix", post, clusters, with(`,"dnsSuffix":"a..b"`), 400, "dnsSuffix"},
		{"negative lease", post, clusters, with(`,"initialLeaseDuration":-2`), 400, "initialLeaseDuration"},
		{"lease for ever", post, clusters, with(`,"initialLeaseDuration":0`), 400, "initialLeaseDuration"},
		{"lease too long", post, clusters, with(`,"initialLeaseDuration":28800001`), 400, "initialLeaseDuration"},
		{"lease in words", post, clusters, with(`,"initialLeaseDuration":"8h"`), 400, "initialLeaseDuration"},
		{"config is a text", post, clusters, with(`,"config":"x"`), 400, "config"},
		{"config and patch", post, clusters, with(`,"config":{},"configPatch":{}`), 400, "configPatch"},
		{"config with NUL", post, clusters, with(`,"config":{"a":"\u0000"}`), 400, "config.a"},
		{"config of no end", post, clusters, with(`,"config":` + deep), 400, "config"},
		{"config with a huge number", post, clusters, with(`,"config":{"a":1e999}`), 400, "config.a"},
		{"wrong macro", post, clusters, with(`,"config":{"a":"%host.service.%"}`), 400, "config/a"},
		{"wrong macro in a patch", post, clusters, with(`,"configPatch":{"web":{"a":"%host.service.%"}}`), 400, "configPatch/web/a"},
		{"description too long", post, clusters, with(`,"description":"` + long + `"`), 400, "description"},
		{"too many labels", post, clusters, with(`,"labels":` + many), 400, "labels"},
		{"label without a key", post, clusters, with(`,"labels":{"":"v"}`), 400, "labels"},
		{"label that is an object", post, clusters, with(`,"labels":{"a":{}}`), 400, "labels.a"},
		{"labels in a list", post, clusters, with(`,"labels":[]`), 400, "labels"},
		{"unknown policy", post, clusters, with(`,"onFailure":"cry"`), 400, "onFailure"},
		{"missing provider fields", post, clusters, with(`,"provider":"cloud"`), 400, "zone|key|providerFields.key|providerFields.zone"},
		{"one of two provider fields", post, clusters, with(`,"provider":"cloud","providerFields":{"zone":"a"}`), 400, "key|providerFields.key"},
		{"provider fields in a list", post, clusters, with(`,"providerFields":[]`), 400, "providerFields"},
		{"several at once", post, clusters, `{"name":"a b","clusterTemplate":"site","numMachines":"x","config":1,"dnsSuffix":"-"}`, 400, "name|numMachines|config|dnsSuffix"},

		// Configure.
		{"empty", put, calm + "/config", ``, 400, ""},
		{"nothing given", put, calm + "/config", `{}`, 400, "config"},
		{"null is nothing", put, calm + "/config", `{"config":null}`, 400, "config"},
		{"not JSON", put, calm + "/config", `config=x`, 400, ""},
		{"config is a list", put, calm + "/config", `{"config":[]}`, 400, "config"},
		{"two at once", put, calm + "/config", `{"config":{},"configPatch":{}}`, 400, "configPatch"},
		{"patch and revision", put, calm + "/config", `{"configPatch":{},"revision":1}`, 400, "revision"},
		{"all three", put, calm + "/config", `{"config":{},"configPatch":{},"revision":1}`, 400, "configPatch"},
		{"patch is a text", put, calm + "/config", `{"configPatch":"x"}`, 400, "configPatch"},
		{"no such revision", put, calm + "/config", `{"revision":7}`, 404, "revision"},
		{"revision 0", put, calm + "/config", `{"revision":0}`, 400, "revision"},
		{"revision in words", put, calm + "/config", `{"revision":"first"}`, 400, "revision"},
		{"restart is maybe", put, calm + "/config", `{"config":{},"restart":"maybe"}`, 400, "restart"},
		{"provider fields are a text", put, calm + "/config", `{"config":{},"providerFields":"x"}`, 400, "providerFields"},
		{"a provider field is an object", put, calm + "/config", `{"config":{},"providerFields":{"zone":{}}}`, 400, "providerFields.zone"},
		{"wrong macro", put, calm + "/config", `{"config":{"a":{"b":"%ip.service.%"}}}`, 400, "config/a/b"},
		{"config with NUL", put, calm + "/config", `{"config":{"\u0000":1}}`, 400, "config"},
		{"patch of no end", put, calm + "/config", `{"configPatch":` + deep + `}`, 400, "configPatch"},
		{"busy", put, busy + "/config", `{"config":{}}`, 409, ""},
		{"no cluster", put, nobody + "/config", `{"config":{}}`, 404, ""},
		{"no cluster of that form", put, "/v2/clusters/x/config", `{"config":{}}`, 404, ""},

		// Services.
		{"add: empty", post, calm + "/services", ``, 400, ""},
		{"add: no list", post, calm + "/services", `{}`, 400, "services"},
		{"add: an empty list", post, calm + "/services", `{"services":[]}`, 400, "services"},
		{"add: a text", post, calm + "/services", `{"services":"web"}`, 400, "services"},
		{"add: all there", post, calm + "/services", `{"services":["web","balancer"]}`, 400, "services"},
		{"add: unknown", post, calm + "/services", `{"services":["ghost"]}`, 400, ""},
		{"add: one without a name", post, calm + "/services", `{"services":[""]}`, 400, ""},
		{"add: an object", post, calm + "/services", `{"services":[{"name":"extra"}]}`, 400, "services[0]"},
		{"add: unknown policy", post, calm + "/services", `{"services":["ghost"],"onFailure":"cry"}`, 400, "onFailure"},
		{"add: bad fields", post, calm + "/services", `{"services":["ghost"],"providerFields":"x"}`, 400, "providerFields"},
		{"add: NUL", post, calm + "/services", `{"services":["\u0000"]}`, 400, "services[0]"},
		{"add: busy", post, busy + "/services", `{"services":["ghost"]}`, 409, ""},
		{"add: no cluster", post, nobody + "/services", `{"services":["ghost"]}`, 404, ""},
		{"start: not JSON", post, calm + "/services/start", `x`, 400, ""},
		{"start: a list", post, calm + "/services/start", `[]`, 400, ""},
		{"stop: bad fields", post, calm + "/services/stop", `{"providerFields":1}`, 400, "providerFields"},
		{"restart: no such service", post, calm + "/services/ghost/restart", ``, 404, ""},
		{"restart: no such service, busy", post, busy + "/services/ghost/restart", ``, 404, ""},
		{"restart: busy", post, busy + "/services/web/restart", ``, 409, ""},
		{"stop: no cluster", post, nobody + "/services/stop", ``, 404, ""},
		{"no such action", post, calm + "/services/dance", ``, 404, ""},
		{"sync: busy", post, busy + "/clustertemplate/sync", ``, 409, ""},
		{"sync: no cluster", post, nobody + "/clustertemplate/sync", ``, 404, ""},

		// Expiry.
		{"empty", post, calm, ``, 400, ""},
		{"nothing given", post, calm, `{}`, 400, "expireTime"},
		{"in words", post, calm, `{"expireTime":"tomorrow"}`, 400, "expireTime"},
		{"a fraction", post, calm, `{"expireTime":1.5}`, 400, "expireTime"},
		{"before it was made", post, calm, `{"expireTime":1}`, 400, "expireTime"},
		{"negative", post, calm, `{"expireTime":-1}`, 400, "expireTime"},
		{"never", post, calm, `{"expireTime":null}`, 400, "expireTime"},
		{"beyond the maximum", post, calm, `{"expireTime":9999999999999}`, 400, "expireTime"},
		{"beyond all time", post, calm, `{"expireTime":9223372036854775807}`, 400, "expireTime"},
		{"busy", post, busy, `{"expireTime":9999999999999}`, 400, "expireTime"},
		{"no cluster", post, nobody, `{"expireTime":9999999999999}`, 404, ""},

		// Edit.
		{"empty", patch, calm, ``, 400, ""},
		{"protected is maybe", patch, calm, `{"protected":"maybe"}`, 400, "protected"},
		{"description is a list", patch, calm, `{"description":[]}`, 400, "description"},
		{"description too long", patch, calm, `{"description":"` + long + `"}`, 400, "description"},
		{"description with NUL", patch, calm, `{"description":"\u0000"}`, 400, "description"},
		{"labels in a list", patch, calm, `{"labels":[]}`, 400, "labels"},
		{"a label too long", patch, calm, `{"labels":{"a":"` + long + `"}}`, 400, "labels"},
		{"an owner nobody knows", patch, calm, `{"ownerId":"nobody"}`, 400, "ownerId"},
		{"an owner without a name", patch, calm, `{"ownerId":""}`, 400, "ownerId"},
		{"an owner with NUL", patch, calm, `{"ownerId":"\u0000"}`, 400, "ownerId"},
		{"an owner that is a list", patch, calm, `{"ownerId":[]}`, 400, "ownerId"},
		{"no cluster", patch, nobody, `{"protected":true}`, 404, ""},

		// Delete.
		{"busy", del, busy, ``, 409, ""},
		{"not JSON", del, calm, `x`, 400, ""},
		{"abort is maybe", del, busy, `{"abort":"maybe"}`, 400, "abort"},
		{"fields in a list", del, calm, `{"providerFields":["a"]}`, 400, "providerFields"},
		{"no cluster", del, nobody, `{"abort":true}`, 404, ""},

		// Previews.
		{"empty", post, previews, ``, 400, ""},
		{"no kind", post, previews, `{}`, 400, "kind"},
		{"unknown kind", post, previews, `{"kind":"fly","clusterId":"1"}`, 400, "kind"},
		{"kind is a list", post, previews, `{"kind":[]}`, 400, "kind"},
		{"create of nothing", post, previews, `{"kind":"create"}`, 400, "request"},
		{"create: name", post, previews, `{"kind":"create","request":{"name":"a b","clusterTemplate":"site","numMachines":3}}`, 400, "request.name"},
		{"create: config", post, previews, `{"kind":"create","request":` + with(`,"config":{"a":"%host.service.%"}`) + `}`, 400, "request.config/a"},
		{"delete of nothing", post, previews, `{"kind":"delete"}`, 400, "clusterId"},
		{"delete of no number", post, previews, `{"kind":"delete","clusterId":"x"}`, 400, "clusterId"},
		{"delete: busy", post, previews, `{"kind":"delete","clusterId":"2"}`, 409, ""},
		{"delete: abort has no preview", post, previews, `{"kind":"delete","clusterId":"2","request":{"abort":true}}`, 409, ""},
		{"add nothing", post, previews, `{"kind":"add_services","clusterId":"1"}`, 400, "request.services"},
		{"add what is there", post, previews, `{"kind":"add_services","clusterId":"1","request":{"services":["web"]}}`, 400, "request.services"},
		{"add and cry", post, previews, `{"kind":"add_services","clusterId":"1","request":{"services":["ghost"],"onFailure":"cry"}}`, 400, "request.onFailure"},
		{"add a text", post, previews, `{"kind":"add_services","clusterId":"1","request":{"services":"web"}}`, 400, "request.services"},
		{"add the unknown", post, previews, `{"kind":"add_services","clusterId":"1","request":{"services":["ghost"]}}`, 400, ""},
		{"add: no cluster", post, previews, `{"kind":"add_services","clusterId":"999","request":{"services":["ghost"]}}`, 404, ""},
		{"configure of nothing", post, previews, `{"kind":"configure","clusterId":"1"}`, 400, "request.config"},
		{"configure: two at once", post, previews, `{"kind":"configure","clusterId":"1","request":{"config":{},"revision":1}}`, 400, "request.revision"},
		{"configure: no such revision", post, previews, `{"kind":"configure","clusterId":"1","request":{"revision":7}}`, 404, "request.revision"},
		{"configure: no cluster", post, previews, `{"kind":"configure","clusterId":"999","request":{"config":{}}}`, 404, ""},
		{"request is a text", post, previews, `{"kind":"configure","clusterId":"1","request":"x"}`, 400, "request"},
		{"start: no such service", post, previews, `{"kind":"start","clusterId":"1","service":"ghost"}`, 404, ""},
		{"start: service is a list", post, previews, `{"kind":"start","clusterId":"1","service":[]}`, 400, "service"},
		{"stop: busy", post, previews, `{"kind":"stop","clusterId":"2"}`, 409, ""},
		{"sync: busy", post, previews, `{"kind":"sync","clusterId":"2"}`, 409, ""},
		{"restart: bad fields", post, previews, `{"kind":"restart","clusterId":"1","request":{"providerFields":[]}}`, 400, "request.providerFields"},
		{"apply: empty", post, previews + "/x/apply", ``, 400, ""},
		{"apply: no hash", post, previews + "/x/apply", `{}`, 400, "hash"},
		{"apply: no preview", post, previews + "/x/apply", `{"hash":"x"}`, 404, ""},
		{"apply: hash is a list", post, previews + "/x/apply", `{"hash":[]}`, 400, "hash"},
		{"apply: bad fields", post, previews + "/x/apply", `{"hash":"x","providerFields":1}`, 400, "providerFields"},

		// The list.
		{"a label without a value", get, clusters + "?label=team", ``, 400, "label"},
		{"a time in words", get, clusters + "?expiresBefore=soon", ``, 400, "expiresBefore"},
		{"an order nobody knows", get, clusters + "?sort=nodes", ``, 400, "sort"},
		{"a page of nothing", get, clusters + "?limit=0", ``, 400, "limit"},
	}
	runBadInputs(t, cases)
}
