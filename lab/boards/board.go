package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// board is a dashboard.
type board struct {
	uid, title, about string
	instances         bool // one can choose instances of xdpmon, not hosts alone
	panels            []panel
}

// panel is one of its pictures.
type panel struct {
	title, about, unit string
	kind               kind
	width              uint32 // of 24; 0: 12
	targets            []target
}

type kind uint8

const (
	lines kind = iota
	number
	rows
)

// target is a query, and how its series are named.
type target struct{ expr, legend string }

// source is the data source that the person chooses.
func source() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{"xdpmon"}).Time("now-1h", "now").Refresh("30s").Timezone("utc").Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("xdpmon").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"xdpmon"}).AsDropdown(true).KeepTime(true).IncludeVars(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(variable("host", "Host", "label_values(xdpmon_info, instance)"))
	if b.instances {
		d = d.WithVariable(variable("instance_name", "Instance", `label_values(xdpmon_windows_total{instance=~"$host"}, instance_name)`))
	}
	for _, p := range b.panels {
		d = d.WithPanel(p.build())
	}
	return d.Build()
}

func variable(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Query(dashboard.StringOrMap{String: &query}).Datasource(source()).Multi(true).IncludeAll(true).AllValue(".*").
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

const height = 8

func (p panel) build() cog.Builder[dashboard.Panel] {
	width := p.width
	if width == 0 {
		width = 12
	}
	switch p.kind {
	case number:
		return stat.NewPanelBuilder().Title(p.title).Description(p.about).Datasource(source()).Unit(p.unit).Height(height / 2).Span(width).Targets(p.queries(true)).NoValue("0")
	case rows:
		return table.NewPanelBuilder().Title(p.title).Description(p.about).Datasource(source()).Unit(p.unit).Height(height).Span(width).Targets(p.queries(true)).NoValue("none").
			WithTransformation(dashboard.DataTransformerConfig{Id: "labelsToFields", Options: map[string]any{"mode": "columns"}}).
			WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	return timeseries.NewPanelBuilder().Title(p.title).Description(p.about).Datasource(source()).Unit(p.unit).Height(height).Span(width).Targets(p.queries(false)).FillOpacity(8).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
}

func (p panel) queries(instant bool) (list []cog.Builder[variants.Dataquery]) {
	for i, t := range p.targets {
		q := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Expr(t.expr).LegendFormat(t.legend)
		if instant {
			q = q.Instant()
		} else {
			q = q.Range()
		}
		list = append(list, q)
	}
	return list
}
