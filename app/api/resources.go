package api

import (
	"net/http"
	"strings"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
)

// resourceRef reads the resource of a path; the parts that it lacks are "".
func (e entries) resourceRef(r *http.Request) loom.ResourceRef {
	return loom.ResourceRef{Kind: string(e.kind), Plugin: r.PathValue("name"), Type: r.PathValue("version"), Name: r.PathValue("resource")}
}

// showVersionOrResources serves a path that means two things: a version of the
// plugin type where the last segment is all digits, else the resources of a type.
func (e entries) showVersionOrResources(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if last := r.PathValue("version"); strings.Trim(last, "0123456789") == "" {
		return e.showVersion(w, r, actor)
	}
	found, err := e.resources(r, actor)
	if err != nil {
		return err
	}
	byName := map[string][]wire.Resource{}
	for _, f := range found {
		byName[f.Name] = append(byName[f.Name], wire.NewResource(f))
	}
	return answer(w, r, byName)
}

func (e entries) listResource(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	found, err := e.resources(r, actor)
	if err != nil {
		return err
	}
	return answerList(w, r, false, found, wire.NewResource, order[loom.Resource]{"version", func(f loom.Resource) string { return byNumber(f.Version) }})
}

func (e entries) resources(r *http.Request, actor loom.Actor) ([]loom.Resource, error) {
	status := loom.ResourceStatus(strings.ToLower(r.URL.Query().Get("status")))
	return e.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: e.resourceRef(r), Status: status})
}

// upload takes raw bytes of any content type, streamed to the bucket; with release=true the
// version is put in use in the same transaction.
func (e entries) upload(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	httpx.Stored(r)
	release, err := queryBool(r, "release")
	if err != nil {
		return err
	}
	stored, err := e.Catalog.UploadAs(r.Context(), actor, e.resourceRef(r), r.Body, catalog.UploadOptions{Limit: e.MaxUpload, Release: release != nil && *release})
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewResource(stored))
}

func (e entries) stage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.slate(w, r, func(version int) error { return e.Catalog.Stage(r.Context(), actor, e.resourceRef(r), version) })
}

func (e entries) release(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.slate(w, r, func(version int) error { return e.Catalog.Release(r.Context(), actor, e.resourceRef(r), version) })
}

func (e entries) recall(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.slate(w, r, func(version int) error { return e.Catalog.Recall(r.Context(), actor, e.resourceRef(r), version) })
}

func (e entries) removeResourceVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.slate(w, r, func(version int) error {
		return e.Catalog.DeleteResource(r.Context(), actor, e.resourceRef(r), version)
	})
}

func (e entries) slate(w http.ResponseWriter, r *http.Request, change func(version int) error) error {
	version, err := versionOf(r, "v")
	if err != nil {
		return err
	}
	if err := change(version); err != nil {
		return err
	}
	return done(w)
}

func (e entries) removeResource(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := e.Catalog.DeleteResource(r.Context(), actor, e.resourceRef(r), 0); err != nil {
		return err
	}
	return done(w)
}

// listResources lists all plugin resources, one for each name.
func (a *api) listResources(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	list, err := a.Catalog.ListResources(r.Context(), actor, catalog.ResourceListInput{
		Page: page, Q: q.Get("q"), Kind: q.Get("kind"), Plugin: q.Get("plugin"), Type: q.Get("type"), Status: loom.ResourceStatus(strings.ToLower(q.Get("status"))),
	})
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewResourceName, list.Next, list.Prev)
}

func (a *api) syncResources(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Catalog.Sync(r.Context(), actor); err != nil {
		return err
	}
	return done(w)
}
