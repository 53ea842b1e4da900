"""How is a mechanism on rows written down, measured and drawn from: by row, by block, by type?"""
