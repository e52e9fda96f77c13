package api

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

// TestRealCatalog loads a whole catalog twice, as the predecessor's loader does:
// every file is taken, and the check names what is missing, no more and no less.
func TestRealCatalog(t *testing.T) {
	t.Parallel()
	folder := testkit.Catalog(t)
	w := newWorld(t)
	types := func(names ...string) []loom.PluginType {
		var all []loom.PluginType
		for _, name := range names {
			all = append(all, loom.PluginType{Base: loom.Base{Name: name}})
		}
		return all
	}
	w.must(w.deps.Catalog.RegisterTypes(t.Context(), types("aws", "openstack", "rackspace", "google", "joyent", "digitalocean", "static"),
		types("chef-solo", "docker", "puppet")))
	for round := 1; round <= 2; round++ {
		n := 0
		for _, kind := range []string{"clustertemplates", "hardwaretypes", "imagetypes", "providers", "services"} {
			files, err := filepath.Glob(filepath.Join(folder, kind, "*.json"))
			w.must(err)
			for _, file := range files {
				body, err := os.ReadFile(file)
				w.must(err)
				name := strings.TrimSuffix(filepath.Base(file), ".json")
				w.call(w.foreign, put, "/v2/"+kind+"/"+name, string(body), "Content-Type", "application/json").want(200)
				if one := w.call(w.foreign, get, "/v2/"+kind+"/"+name, "").want(200); one.header.Get("ETag") != fmt.Sprintf(`"%d"`, round) {
					t.Errorf("%s/%s has the version %s in round %d", kind, name, one.header.Get("ETag"), round)
				}
				n++
			}
		}
		if n < 60 {
			t.Fatalf("only %d files in %s", n, folder)
		}
	}
	dangling := map[string]bool{}
	for _, f := range w.call(w.foreign, get, "/v2/check?limit=500", "").want(200).array() {
		if f["code"] != "dangling" {
			t.Logf("%v %v %v/%v %v %v: %v", f["severity"], f["code"], f["kind"], f["name"], f["field"], f["value"], f["message"])
			continue
		}
		field := f["field"].(string)
		place := strings.SplitN(field, "/", 4)
		where := fmt.Sprintf("%v %v", f["kind"], f["value"])
		if f["kind"] != "hardwaretypes" && f["kind"] != "imagetypes" {
			where = fmt.Sprintf("%v/%v %v", f["kind"], f["name"], f["value"])
		}
		dangling[strings.Join(place[1:2], "/")+" "+where] = true
	}
	var got []string
	for place := range dangling {
		got = append(got, place)
	}
	slices.Sort(got)
	want := []string{
		"compatibility clustertemplates/docker-all cdap-sandbox-docker", "compatibility clustertemplates/docker-all coopr-standalone-docker",
		"compatibility clustertemplates/docker-base ubuntu16",
		"dependencies services/hadoop-hdfs-datanode hadoop-hdfs-secondarynamenode",
		"providermap hardwaretypes aws-us-west-1", "providermap hardwaretypes aws-us-west-2",
		"providermap imagetypes aws-us-west-1", "providermap imagetypes aws-us-west-2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("dangling are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
