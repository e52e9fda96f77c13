// Package ui holds the components of the design system: small templ components,
// each a function of a flat view model that is ready to print. Pages are composed
// of these and never write a component's markup themselves.
//
// It must not know pages, routes of objects, sessions or use cases, and reads no
// clock: whoever builds a model passes now. There is no style attribute, no
// inline script and no templ.Raw anywhere; geometry goes into SVG attributes.
//
// A list:
//
//	@ui.Table(ui.TableModel{ID: "clusters", Caption: "Clusters", Columns: []ui.Column{
//		{Label: "Name", Sort: "?sort=name", Sorted: ui.Ascending}, {Label: "Status"}, {Label: "Nodes", Numeric: true}}}) {
//		<tr>
//			<th scope="row"><a href={ route.Cluster(c.ID) }>{ c.Name }</a></th>
//			<td>@ui.Badge(ui.ClusterState(c.Status))</td>
//			<td class="u-num">3</td>
//		</tr>
//	}
//
// A form; ErrorSummary goes above the first field, FieldErrors picks messages:
//
//	<form method="post" action={ route.Login("") } data-once>
//		@ui.ErrorSummary(m.Errors)
//		@ui.Field(ui.FieldModel{Name: "user", Label: "User name", Error: m.Errors.For("user"), Value: m.User})
//		@ui.Button(ui.ButtonModel{Label: "Sign in", Busy: "Signing in…", Kind: ui.Primary, Submit: true})
//	</form>
//
// A live fragment: the element names the topics that concern it and where its
// new form is fetched; layout.Model.Topics names those of the page's one stream.
//
//	<section id="panel" { ui.Live(route.ClusterPanel(id), route.TopicCluster(id))... }>…</section>
//
// A dialog: the link works as a page; with scripts its content opens in the
// frame's one dialog, and the server answers HX-Target "dialog" with
// ui.DialogContent.
//
//	<a class="c-button" href={ route.ClusterDelete(id) } { ui.OpensDialog(route.ClusterDelete(id))... }>Delete</a>
//
// The cancel link and the button of a dialog go into DialogFoot:
//
//	<form method="post" action={ … } hx-post={ … } hx-target="#dialog" data-once data-confirm-name={ m.Name }>
//		@ui.Field(ui.FieldModel{Name: "confirm", Label: "Type the name of the cluster"})
//		@ui.DialogFoot(route.Cluster(m.ID)) {
//			@ui.Button(ui.ButtonModel{Label: "Delete " + m.Name, Busy: "Deleting…", Kind: ui.DangerFilled,
//				Submit: true, Attrs: templ.Attributes{"data-confirm": true}})
//		}
//	</form>
//
// Attributes of forms that the script knows: data-once (a second submit is
// dropped), data-guard (leaving with unsaved changes warns), data-check="#id" (that
// element is marked outdated while the form changes, until htmx answers into it),
// data-confirm-name (the button with data-confirm stays off until the name is
// typed). Logs, pickers and JSON fields do not belong inside a live fragment: the
// morph would take back what their scripts made of them.
//
// Classes usable by pages: l-stack, l-stack-tight, l-cluster (a row that wraps),
// l-split (a form and, at its right, l-side: a sticky panel), l-grid (cards),
// l-page-head (h1 and actions), c-card, c-card-head, c-form, c-form-pair (short
// fields side by side), c-toolbar (filters above a list), c-actions, c-dag-list (the
// list after a DAG), u-num, u-mono, u-muted, u-small, u-bad, u-warn, u-hidden (only
// read out), u-nowrap, u-measure, u-script (only with scripts), u-wide (only from
// 40 rem).
package ui
