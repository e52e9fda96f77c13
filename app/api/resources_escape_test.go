package api

import (
	"testing"

	"loom/app/archive/archivetest"
	"loom/app/loom"
)

// TestEscapeArchiveIsRefused: the archive whose links once led to any file of the host
// is refused at the upload with the name of the entry, for every automator that takes
// archives and in both formats, and no version of it is there.
func TestEscapeArchiveIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holders := map[string]string{"shell": "archives", "chef-solo": "cookbooks", "puppet": "modules"}
	var types []loom.PluginType
	for plugin, typ := range holders {
		types = append(types, loom.PluginType{Base: loom.Base{Name: plugin}, ResourceTypes: map[string]loom.ResourceType{typ: {Format: "archive"}}})
	}
	w.must(w.deps.Catalog.RegisterTypes(t.Context(), nil, types))
	for plugin, typ := range holders {
		at := "/v2/plugins/automatortypes/" + plugin + "/" + typ + "/site"
		for _, pack := range archivetest.Both {
			w.call(w.admin, post, at, string(pack(t, archivetest.Escape("site", "/etc/shadow", 9)...))).fails(400, "file", "“top/d0/d1/d2/d3/b”, a link to “../../../../../site/sub”, which leads outside of the resource")
			w.call(w.admin, post, at, string(pack(t, archivetest.Entry{Name: "top/x"}, archivetest.Entry{Name: "top/shadow", Link: "/etc/shadow"}))).fails(400, "file", "“top/shadow”, a link to “/etc/shadow”")
		}
		if left := w.call(w.admin, get, at, "").want(200).array(); len(left) != 0 {
			t.Errorf("%s: the refused archive was stored: %v", plugin, left)
		}
		w.call(w.admin, post, at, string(archivetest.TarGz(t, archivetest.Entry{Name: "top/x"}, archivetest.Entry{Name: "top/y", Link: "x"}))).want(200)
	}
}
