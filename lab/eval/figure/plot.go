package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Point of a curve.
type Point struct{ X, Y float64 }

// Series is a curve with its name in the legend. Points with a coordinate that is not finite are left out, and so are
// those at or below 0 on a logarithmic axis.
type Series struct {
	Name   string
	Points []Point
	Style  Style
}

// Panel is one plot.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	// Legend is drawn where there is room: "top left" and so on; "" for none, when another panel has it.
	Legend Corner
}

// Corner of a panel.
type Corner uint8

const (
	NoLegend Corner = iota
	TopLeft
	TopRight
	BottomLeft
	BottomRight
)

// Figure is one picture: panels from left to right.
type Figure struct {
	Panels        []Panel
	Width, Height vg.Length // of a panel; 0: 13 x 9 cm
}

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// WriteSVG draws the figure.
func (f *Figure) WriteSVG(w io.Writer) error {
	width, height := f.Width, f.Height
	if width == 0 {
		width = 13 * vg.Centimeter
	}
	if height == 0 {
		height = 9 * vg.Centimeter
	}
	canvas := vgsvg.New(vg.Length(len(f.Panels))*width, height)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	row := make([]*plot.Plot, len(f.Panels))
	for i, p := range f.Panels {
		var err error
		if row[i], err = p.plot(); err != nil {
			return fmt.Errorf("draw %q: %w", p.Title, err)
		}
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: 4 * vg.Millimeter, PadTop: vg.Millimeter,
		PadBottom: vg.Millimeter, PadLeft: vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for i, c := range plot.Align([][]*plot.Plot{row}, tiles, all)[0] {
		row[i].Draw(c)
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// A viewer without that font takes one of the same widths.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

// Save writes the figure as dir/name and returns what Markdown shows it by.
func (f *Figure) Save(dir, name, alternative string) (string, error) {
	out, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("write figure: %w", err)
	}
	defer out.Close()
	if err := f.WriteSVG(out); err != nil {
		return "", err
	}
	return fmt.Sprintf("![%s](%s)\n", alternative, filepath.ToSlash(name)), out.Close()
}

func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.Title
	out.Title.Padding = 2 * vg.Millimeter
	out.Title.TextStyle.Font.Size = 11
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	out.Add(grid)
	for i, s := range p.Series {
		if err := s.add(out, i, p.X, p.Y); err != nil {
			return nil, err
		}
	}
	p.X.apply(&out.X)
	p.Y.apply(&out.Y)
	p.legend(&out.Legend)
	return out, nil
}

func (p Panel) legend(l *plot.Legend) {
	if p.Legend == NoLegend {
		*l = plot.NewLegend()
		return
	}
	l.Top = p.Legend == TopLeft || p.Legend == TopRight
	l.Left = p.Legend == TopLeft || p.Legend == BottomLeft
	l.ThumbnailWidth = 8 * vg.Millimeter
	l.TextStyle.Font.Size = 9
	l.Padding = vg.Millimeter
	l.XOffs, l.YOffs = 2*vg.Millimeter, -vg.Millimeter
	if !l.Left {
		l.XOffs = -l.XOffs
	}
	if !l.Top {
		l.YOffs = -l.YOffs
	}
}

func (s Series) add(to *plot.Plot, n int, x, y Axis) error {
	points := s.drawable(x, y)
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	s.Style.apply(n, line, marks)
	var thumbs []plot.Thumbnailer
	if !s.Style.Dots {
		to.Add(line)
		thumbs = append(thumbs, line)
	}
	if s.Style.Marks || s.Style.Dots {
		to.Add(unpadded{marks})
		thumbs = append(thumbs, marks)
	}
	if s.Name != "" {
		to.Legend.Add(s.Name, thumbs...)
	}
	return nil
}

// unpadded are marks that may reach over the edge of the panel: the space that gonum leaves for them moves the axes of
// panels that should be alike.
type unpadded struct{ *plotter.Scatter }

// GlyphBoxes implements plot.GlyphBoxer: none.
func (unpadded) GlyphBoxes(*plot.Plot) []plot.GlyphBox { return nil }

func (s Series) drawable(x, y Axis) plotter.XYs {
	var list plotter.XYs
	for _, p := range s.Points {
		at := plotter.XY{X: x.place(p.X), Y: y.place(p.Y)}
		if finite(at.X) && finite(at.Y) {
			list = append(list, at)
		}
	}
	return list
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
