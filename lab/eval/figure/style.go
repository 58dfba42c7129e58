package figure

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Style of a curve. The zero value is a solid line in the colour of its place among the curves.
type Style struct {
	Marks  bool // a mark at every point; its form depends on the place, as the colour does
	Dots   bool // points alone, small
	Dashed bool
	Wide   bool // the truth: a broad grey band behind the others
	Place  int  // 1.. takes colour and mark of that place instead of its own
}

var faint = color.Gray{Y: 215}

// palette of Okabe and Ito (2008), which people with any kind of colour vision distinguish.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{60, 60, 60, 255},
}

var marks = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{},
	draw.PyramidGlyph{}, draw.CrossGlyph{}}

func (s Style) apply(n int, line *plotter.Line, points *plotter.Scatter) {
	if s.Place > 0 {
		n = s.Place - 1
	}
	line.Color = palette[n%len(palette)]
	line.Width = 1.5 * vg.Points(1)
	if s.Wide {
		line.Color, line.Width = color.Gray{Y: 190}, 6*vg.Points(1)
	}
	if s.Dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	points.Color = line.Color
	points.Radius = vg.Points(2.8)
	points.Shape = marks[n%len(marks)]
	if s.Dots {
		points.Radius, points.Shape = vg.Points(1.2), draw.CircleGlyph{}
	}
}
