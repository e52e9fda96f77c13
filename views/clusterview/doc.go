// Package clusterview is the pages and fragments about clusters: home, the list,
// the form for a new cluster, previews, clusters with their operations, tasks
// and nodes.
//
// It must not know use cases: every component is a function of one flat model
// that is ready to print, made by package web. A part of a page that is fetched
// again while the page is open has its id and its URL in ids.go, and the
// component of that part is what both the page and the fragment render.
package clusterview
