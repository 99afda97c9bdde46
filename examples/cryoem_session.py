"""An hour on a simulated grid: what COAF collects, beside what people and other programs do."""

from coaf.cryoem import Simulator, collect

# With pixels=True, the default, squares are drawn and holes are found in the images.
microscope = Simulator(seed=3, squares=12, pixels=False, prediction=True)
session = collect(microscope, policy="coaf", hours=1)

for row in session.rows[:6]:
    print(f"{row['clock']:6.0f} s  {row['event']:7}  {row['why']}")

print()
for line in session.table():
    print(f"{line['policy']:13} {line['good']:4.0f} good of {line['exposed']:4} exposed")
