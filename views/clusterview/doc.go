// Package clusterview is the pages and fragments about clusters: home, the list,
// the form for a new cluster, previews, clusters with their operations, tasks
// and nodes.
//
// Components take the read types of use cases, and a model of their own where a page says
// more than those. They read nothing themselves: package web does. A part of a page that is fetched
// again while the page is open has its id and its URL in ids.go, and the
// component of that part is what both the page and the fragment render.
package clusterview
